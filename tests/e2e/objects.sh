#!/bin/bash
# Prints the names of everything in the cluster that lasts, one a line: not what the cluster itself makes as it goes.
set -euo pipefail
kinds=$("$KUBECTL" api-resources --verbs=list -o name | grep -vE '^(events|events.events.k8s.io|pods|endpoints|endpointslices.discovery.k8s.io|leases.coordination.k8s.io|replicasets.apps|controllerrevisions.apps|componentstatuses|ipaddresses.networking.k8s.io|.*\.metrics\.k8s\.io)$' | paste -sd,)
"$KUBECTL" get "$kinds" --all-namespaces --ignore-not-found -o custom-columns=K:.kind,A:.apiVersion,NS:.metadata.namespace,N:.metadata.name --no-headers | tr -s ' ' | sort
