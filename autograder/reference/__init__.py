"""The theory as code: one module a lesson, and every right answer of the course comes from here."""
