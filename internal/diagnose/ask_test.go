package diagnose

