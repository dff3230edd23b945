// Package charts checks the Helm chart and the Compose file with the libraries of Helm and Compose: that they are well formed, that Kubernetes accepts the rendered
// objects, and that three nodes that are started with the rendered arguments become a cluster.
package charts
