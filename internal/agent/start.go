package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/agent/launch"
	"github.com/musterhq/muster/internal/agent/output"
	"github.com/musterhq/muster/internal/agent/process"
	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/atomicfile"
)

// start starts a process in an empty slot. A failure counts as a crash, so that the start is retried after a pause.
func (a *Agent) start(e *entry, slot int, now time.Time) {
	s := &server{id: uuid.NewString(), entry: e, spec: e.spec, build: e.build, slot: slot, dir: a.rootOf(e), started: now, ports: map[string]int{}, log: nil}
	s.log = output.New(a.logDir(s.id), a.config.Output)
	command, err := a.prepare(s, now)
	if err == nil {
		// Saved before the start, so that if the agent is killed right after it, the next agent finds the process.
		a.running[s.id] = s
		err = a.save()
	}
	if err == nil {
		if s.process, err = a.config.Groups.Start(command); cannotRun(err) {
			err = &pathError{err}
		}
	}
	if command.Output != nil {
		command.Output.Close()
	}
	if err != nil {
		a.notStarted(s, err, now)
		return
	}
	a.counts.starts++
	e.slots[slot] = s
	e.crash.Started(slot, now)
	a.save()
	a.config.Log.Info("server process started", "process", s.id, "pid", s.process.Record().PID, "path", s.spec.LaunchPath, "port", s.ports[""])
	a.await(s)
}

// notStarted records a process that could not be started. As in the official agent, only a path without a program becomes an event of the fleet.
func (a *Agent) notStarted(s *server, err error, now time.Time) {
	a.counts.startFailures++
	delete(a.running, s.id)
	s.agones.Remove()
	a.pool.Return(slices.Collect(maps.Values(s.ports))...)
	os.RemoveAll(a.logDir(s.id))
	s.entry.cause, s.entry.reason = agentproto.CauseNoStart, err.Error()
	failed := s.entry.crash.Ended(s.slot, true, now)
	a.config.Log.Error("server process cannot be started: the agent tries again", "path", s.spec.LaunchPath, "failed", failed,
		"pause", s.entry.crash.Wait(s.slot, now).Round(time.Millisecond), "error", err)
	if _, ok := errors.AsType[*pathError](err); ok {
		s.entry.cause = agentproto.CausePath
		a.unsent = append(a.unsent, endedOf(s, agentproto.InvalidPath, agentproto.Exit{EndedMillis: now.UnixMilli(), LastOutput: agentproto.LastOutput([]byte(err.Error()))}))
	}
	a.save()
}

// cannotRun reports whether a process could not be started because of its program, and not because the host lacks something.
func cannotRun(err error) bool {
	if _, ok := errors.AsType[*exec.Error](err); ok {
		return true
	}
	failed, ok := errors.AsType[*fs.PathError](err)
	return ok && failed.Op == "fork/exec" && !slices.ContainsFunc([]error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE}, func(lack error) bool { return errors.Is(err, lack) })
}

// pathError means that a launch path names nothing executable.
type pathError struct{ error }

func (e *pathError) Unwrap() error { return e.error }

// prepare returns the command of a process, with its ports and directories.
func (a *Agent) prepare(s *server, now time.Time) (c process.Command, err error) {
	path, err := programPath(s.spec.LaunchPath, s.dir)
	if err != nil {
		return c, &pathError{err}
	}
	words := launch.Split(s.spec.Parameters)
	if a.config.Quote {
		if words, err = launch.SplitQuoted(s.spec.Parameters); err != nil {
			return c, err
		}
	}
	names := words.PortNames()
	if a.config.Agones {
		names = append(names, agonesGRPC, agonesHTTP)
	}
	for _, name := range names {
		port, err := a.pool.Take(now)
		if err != nil {
			return c, err
		}
		s.ports[name] = port
	}
	dir, own := a.logDir(s.id), a.ownDir(s.id)
	if err := errors.Join(atomicfile.MakeDir(own, 0o755), a.config.User.Own(own)); err != nil {
		return c, err
	}
	variables, err := a.serveAgones(s)
	if err != nil {
		return c, err
	}
	values := launch.Values{Index: s.slot, ProcessID: s.id, LogDir: own, Ports: s.ports}
	file, err := s.log.Writer()
	if err != nil {
		return c, fmt.Errorf("output in %s: %w", dir, err)
	}
	return process.Command{
		ID: s.id, Path: path, Args: words.Fill(values), Dir: s.dir, Env: append(a.environment(values), variables...), Output: file, User: a.config.User, Memory: a.config.MemoryMax,
	}, nil
}

// gamePrefixes are the prefixes of launch paths that the API documents for managed fleets.
var gamePrefixes = []string{"/local/game/", "C:/Game/", "c:/game/"}

// programPath returns the path of a launch path's program, which must be below root. The directories that the API documents for managed fleets are
// replaced by root.
func programPath(launch, root string) (string, error) {
	rest := strings.ReplaceAll(launch, `\`, "/")
	for _, prefix := range gamePrefixes {
		if after, ok := strings.CutPrefix(rest, prefix); ok {
			rest = after
			break
		}
	}
	path := filepath.FromSlash(rest)
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	within, err := filepath.Rel(root, filepath.Clean(path))
	if err != nil || !filepath.IsLocal(within) {
		return "", fmt.Errorf("launch path %q: want a path in %s", launch, root)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("launch path %q: %w", launch, err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("launch path %q: %s is not a file", launch, path)
	}
	return path, nil
}

// environment returns the agent's own environment, without its secrets and settings, plus what server SDKs need.
func (a *Agent) environment(values launch.Values) []string {
	list := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		return strings.HasPrefix(name, "MUSTER_") || strings.HasPrefix(name, "GAMELIFT_") ||
			slices.Contains([]string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "INVOCATION_ID"}, name)
	})
	list = append(list, a.config.User.Environment()...)
	list = append(list, values.Environment()...)
	list = append(list, "MUSTER_LOG_DIR="+values.LogDir)
	if a.token != nil {
		list = append(list,
			"GAMELIFT_SDK_WEBSOCKET_URL="+a.hello.SDKEndpoint, "GAMELIFT_SDK_AUTH_TOKEN="+a.token.AuthToken,
			"GAMELIFT_SDK_FLEET_ID="+a.token.FleetID, "GAMELIFT_SDK_HOST_ID="+a.token.ComputeName)
	}
	return list
}
