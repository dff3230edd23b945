// Package state stores the agent's state on disk. With it, an agent that was killed or replaced finds its server processes again and still tells the
// service which ones have ended.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/internal/agent/process"
	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/atomicfile"
)

// version is the version of the file's format. An agent refuses to start with a newer one.
const version = 1

// EndedMax bounds the ended processes that the service has not been told about. The oldest ones beyond it are dropped, because the service also
// learns from the next heartbeat that a process is gone.
const EndedMax = 1000

// State is the content of the file.
type State struct {
	Version   int       `json:"version"`
	BootID    string    `json:"bootId"`
	Processes []Process `json:"processes,omitzero"`
	Ended     []Ended   `json:"ended,omitzero"`   // oldest first
	Uploads   []Upload  `json:"uploads,omitzero"` // oldest first
}

// Upload is an ended process whose logs must still be uploaded.
type Upload struct {
	ID      string   `json:"id"`
	Session string   `json:"session,omitzero"`
	Paths   []string `json:"paths,omitzero"` // of logs, as the process named them
	Dir     string   `json:"dir"`            // the process's working directory
}

// Process is a server process that is running or was about to be started.
type Process struct {
	ID         string         `json:"id"`
	Record     process.Record `json:"record"` // without a process id: it was about to be started
	LaunchPath string         `json:"launchPath"`
	Parameters string         `json:"parameters,omitzero"`
	Slot       int            `json:"slot"`
	Ports      map[string]int `json:"ports,omitzero"`
	Dir        string         `json:"dir"`            // working directory
	Build      string         `json:"build,omitzero"` // digest of the build that it runs from
	Started    time.Time      `json:"started"`
	Registered bool           `json:"registered,omitzero"`
	Session    string         `json:"session,omitzero"`
	LogPaths   []string       `json:"logPaths,omitzero"`
	// Reason is why the agent is ending the process.
	Reason agentproto.TerminationReason `json:"reason,omitzero"`
}

// Ended is an ended process that the service must still be told about. Until then, its output stays in its directory.
type Ended struct {
	ID     string                       `json:"id"`
	Reason agentproto.TerminationReason `json:"reason"`
	Exit   agentproto.Exit              `json:"exit"` // without output
}

// File is the state file of one agent.
type File struct{ path string }

// Open returns the file in a directory, which it creates if necessary. It holds a lock that keeps other agents out for as long as this process lives.
func Open(dir string) (*File, State, func(), error) {
	if err := atomicfile.MakeDir(dir, 0o700); err != nil {
		return nil, State{}, nil, err
	}
	unlock, err := lock(filepath.Join(dir, "agent.lock"))
	if err != nil {
		return nil, State{}, nil, fmt.Errorf("state directory %s: another agent uses it: %w", dir, err)
	}
	f := &File{path: filepath.Join(dir, "agent.json")}
	s, err := f.read()
	if err != nil {
		unlock()
		return nil, State{}, nil, err
	}
	return f, s, unlock, nil
}

func (f *File) read() (s State, err error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{Version: version}, nil
	}
	if err != nil {
		return State{}, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return State{}, fmt.Errorf("%s: %w; it lists the server processes that run: end them and remove the file", f.path, err)
	}
	if s.Version != version {
		return State{}, fmt.Errorf("%s: version %d; want version %d: another release of the agent wrote the file", f.path, s.Version, version)
	}
	return s, nil
}

// Write replaces the contents.
func (f *File) Write(s State) error {
	s.Version = version
	if extra := len(s.Ended) - EndedMax; extra > 0 {
		s.Ended = s.Ended[extra:]
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return atomicfile.Write(f.path, text, 0o600)
}
