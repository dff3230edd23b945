// Package agones lets game servers that were built for Agones run without Kubernetes. It serves the SDK interface of Agones' sidecar (gRPC and REST)
// on loopback to one server process, and represents that process at the service over the protocol of the server SDK.
//
// A Process has one state under one lock, which calls of the game and pushes of the service change. Three goroutines react to changes: the link
// reports the state to the service, the keeper saves it to a file for the next agent, and the clock ends reservations and judges health. The guide's
// page on Agones has the mapping.
package agones

import (
	"crypto/tls"
	"log/slog"
	"maps"
	"strconv"
	"time"
)

// Environment variables in which SDKs find the ports of the interface.
const (
	GRPCVariable = "AGONES_SDK_GRPC_PORT"
	HTTPVariable = "AGONES_SDK_HTTP_PORT"
)

// Config describes a Process.
type Config struct {
	ID      string // of the server process in the service
	Started time.Time
	File    string // with the state

	GRPCPort, HTTPPort int
	Ports              map[string]int // of the game, by name; the first one's name is empty

	GameServer *GameServer // initial state of new processes
	Service    *Service    // nil: none, and the process becomes Ready when it reports that
	TLS        *tls.Config // of the connection to the service; nil: the defaults

	// End is called when the game or the service wants the process to end, and Unhealthy when the game has stopped reporting that it is healthy. Each
	// is called in its own goroutine.
	End, Unhealthy func()

	Log *slog.Logger
}

// Environment returns the environment variables that tell an SDK its ports.
func (c *Config) Environment() []string {
	return []string{GRPCVariable + "=" + strconv.Itoa(c.GRPCPort), HTTPVariable + "=" + strconv.Itoa(c.HTTPPort)}
}

// gamePorts returns the ports by their names in Agones, where the first one is default.
func (c *Config) gamePorts() map[string]int {
	named := maps.Clone(c.Ports)
	if first, ok := named[""]; ok {
		delete(named, "")
		named["default"] = first
	}
	return named
}
