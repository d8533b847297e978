"""Contains one planner for each verb, which turns a checkpoint and options into a plan."""
