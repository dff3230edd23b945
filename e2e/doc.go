// Package e2e tests what users run: the real binaries, with the clients that exist in the world. It contains only
// tests.
//
// TestMain builds Muster, the arena example and the game server in folder serversdk (with two versions of the
// official server SDK). Each test starts its own service on a loopback port with its own data directory
// (service_test.go), kills it, restarts it, and uses it through the AWS CLI, the AWS SDKs for Go and JavaScript
// (folder js), official server SDKs, and a bare protocol client for behavior that no SDK has.
package e2e
