"""What one forward step costs on one chip: operators, roofline, attention, step table."""
