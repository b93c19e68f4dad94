"""Several servers behind one address: HAProxy as the ingress, configured and supervised by us."""
