"""`python -m lessonlib` is the `lesson` command."""

from lessonlib.cli import main

if __name__ == "__main__":
    main()
