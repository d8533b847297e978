"""Kafka: what a subscription reads, and which records a cluster still has."""
