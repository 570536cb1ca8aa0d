"""What the notebooks show. Nothing here is imported by `import lessonlib`, and no lesson needs a widget to be followed."""
