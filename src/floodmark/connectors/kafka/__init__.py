"""Reads Kafka's offsets and subscriptions, and asks which records a cluster still has."""
