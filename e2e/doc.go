// Package e2e is for testing what users run: the real binaries, driven by the clients that the world has. It has no
// code but tests.
//
// TestMain builds Muster, the arena example and the game server of folder serversdk (with two versions of the
// official server SDK). Each test starts a service of its own on a loopback port with a data directory of its own
// (service_test.go), kills it, restarts it, and looks at it through the AWS CLI, the AWS SDKs for Go and JavaScript
// (folder js), official server SDKs, and a bare protocol client for what no SDK would do.
package e2e
