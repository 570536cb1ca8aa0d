"""lessonlib"""
