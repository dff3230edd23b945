// Package charts checks the Helm chart and the Compose file with the libraries of Helm and Compose: that they are well formed, that what they render is what Kubernetes takes, and that three nodes
// started with the rendered arguments become a cluster.
package charts
