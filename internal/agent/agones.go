package agent

import (
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/musterhq/muster/internal/agent/agones"
	"github.com/musterhq/muster/internal/agent/link"
	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/atomicfile"
)

// The names of the two ports of a process's Agones interface. A {port:NAME} in Parameters cannot use them.
const (
	agonesGRPC = "agones/grpc"
	agonesHTTP = "agones/http"
)

// agonesDir returns the directory with the state of the Agones interfaces, one file per process.
func (a *Agent) agonesDir() string { return filepath.Join(a.config.StateDir, "agones") }

// serveAgones serves the Agones interface of a process that has ports for it, and returns the environment variables that tell the process.
func (a *Agent) serveAgones(s *server) ([]string, error) {
	grpc, ok := s.ports[agonesGRPC]
	if !ok {
		return nil, nil
	}
	if err := atomicfile.MakeDir(a.agonesDir(), 0o700); err != nil {
		return nil, err
	}
	game := maps.Clone(s.ports)
	maps.DeleteFunc(game, func(name string, _ int) bool { return strings.HasPrefix(name, "agones/") })
	config := agones.Config{
		ID: s.id, Started: s.started, File: filepath.Join(a.agonesDir(), s.id+".json"), GRPCPort: grpc, HTTPPort: s.ports[agonesHTTP], Ports: game,
		GameServer: a.config.GameServer, Log: a.config.Log,
		End:       func() { a.do(func() { a.endAgones(s, agentproto.NormalTermination) }) },
		Unhealthy: func() { a.do(func() { a.endAgones(s, agentproto.TerminatedUnhealthy) }) },
	}
	if a.config.Target != nil {
		config.Service, config.TLS = &a.agones, link.TLS(a.config.Trust)
	}
	process, err := agones.Open(config)
	if err != nil {
		return nil, err
	}
	s.agones = process
	return config.Environment(), nil
}

// endAgones ends a process at the request of its Agones interface.
func (a *Agent) endAgones(s *server, reason agentproto.TerminationReason) {
	switch {
	case a.running[s.id] != s || s.process == nil || s.stopping:
	case reason == agentproto.TerminatedUnhealthy:
		a.because(s, reason)
		go a.abort(s.process)
	default:
		a.end(s, reason)
	}
}

// adoptAgones serves the interface of an adopted process again, on the same ports.
func (a *Agent) adoptAgones(s *server) {
	if _, err := a.serveAgones(s); err != nil {
		a.config.Log.Error("the Agones interface of an adopted server process cannot be served: the process continues without it", "process", s.id, "error", err)
	}
}

// closeAgones hands over the interfaces to the next agent.
func (a *Agent) closeAgones() {
	for _, s := range a.running {
		s.agones.Close()
	}
}

// tidyAgones removes the files of processes that ended while no agent was running.
func (a *Agent) tidyAgones() {
	entries, err := os.ReadDir(a.agonesDir())
	if err != nil {
		if !os.IsNotExist(err) {
			a.config.Log.Warn("state of Agones servers cannot be tidied", "error", err)
		}
		return
	}
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); !ok || a.running[id] == nil {
			if err := os.Remove(filepath.Join(a.agonesDir(), e.Name())); err != nil && !os.IsNotExist(err) {
				a.config.Log.Warn("state of an Agones server cannot be removed", "error", err)
			}
		}
	}
}

// hosting reports whether a process has a game session or prevents getting one. An Agones server may already have left the game session that the
// service has reported.
func (s *server) hosting() bool {
	if busy, known := s.agones.Busy(); known {
		return busy
	}
	return s.session != ""
}
