package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/agent/bundle"
	"github.com/musterhq/muster/internal/agent/link"
	"github.com/musterhq/muster/internal/agent/output"
	"github.com/musterhq/muster/internal/agent/state"
	"github.com/musterhq/muster/internal/agentproto"
)

// Bounds of the uploads of logs.
const (
	uploadsMax     = 200 // queued uploads; beyond this, the oldest are dropped
	uploadsAtOnce  = 2   // large logs do not delay small ones, and the archives need little space
	uploadTime     = 20 * time.Minute
	uploadAttempts = 12
	retryUpload    = 5 * time.Second // pause of an upload after its first failure, which doubles up to retryUploadMax, and of all others after each failure
	retryUploadMax = 10 * time.Minute
)

// uploads holds the state of log uploads, besides the queue in the state file. It is owned by the goroutine of Run.
type uploads struct {
	queue []state.Upload // oldest first
	tries map[string]try // by the id of the process; those that have begun
	busy  int            // uploads in progress
	next  time.Time      // no attempt of any upload before this
}

// try is the state of an upload that has begun.
type try struct {
	busy     bool
	failures int
	next     time.Time // no attempt before this
}

// noteLogs queues the logs of an ended process that may have had a game session.
func (a *Agent) noteLogs(s *server) {
	if !s.registered && s.session == "" || a.config.Target == nil {
		return
	}
	u := &a.uploads
	u.queue = append(u.queue, state.Upload{ID: s.id, Session: s.session, Paths: s.logPaths, Dir: s.dir})
	if extra := len(u.queue) - uploadsMax; extra > 0 {
		a.config.Log.Warn("too many logs of game sessions wait for their upload: the oldest are dropped", "dropped", extra)
		for _, old := range u.queue[:extra] {
			delete(u.tries, old.ID)
		}
		u.queue = slices.Clone(u.queue[extra:])
	}
}

// upload uploads the oldest logs, once the end of their process has been reported to the service. Logs that wait for their next attempt let others pass.
func (a *Agent) upload(now time.Time) {
	u := &a.uploads
	for _, one := range u.queue {
		if !a.connected || u.busy == uploadsAtOnce || now.Before(u.next) {
			return
		}
		try := u.tries[one.ID]
		if try.busy || now.Before(try.next) || slices.ContainsFunc(a.unsent, func(e state.Ended) bool { return e.ID == one.ID }) {
			continue
		}
		try.busy = true
		u.set(one.ID, try)
		u.busy++
		ctx := a.context
		go func() {
			err := a.uploadLogs(ctx, one)
			a.do(func() { a.uploaded(one, err) })
		}()
	}
}

func (u *uploads) set(id string, x try) {
	if u.tries == nil {
		u.tries = map[string]try{}
	}
	u.tries[id] = x
}

// errUnwanted means that the service will never accept these logs.
var errUnwanted = errors.New("the service does not accept these logs")

func (a *Agent) uploaded(one state.Upload, err error) {
	u := &a.uploads
	u.busy--
	try, known := u.tries[one.ID]
	if !known {
		return // dropped meanwhile
	}
	try.busy = false
	if errors.Is(err, link.ErrNotConnected) {
		u.set(one.ID, try)
		return
	}
	switch {
	case err == nil:
		a.counts.uploads++
	case !errors.Is(err, errUnwanted):
		a.counts.uploadFailures++
	}
	if try.failures++; err != nil && !errors.Is(err, errUnwanted) && try.failures < uploadAttempts {
		pause := min(retryUpload<<(try.failures-1), retryUploadMax)
		a.config.Log.Warn("logs of a game session cannot be uploaded: the agent tries again", "process", one.ID, "pause", pause, "error", err)
		now := time.Now()
		try.next, u.next = now.Add(pause), now.Add(retryUpload)
		u.set(one.ID, try)
		return
	}
	switch {
	case errors.Is(err, errUnwanted):
		a.config.Log.Debug("logs of a server process are not uploaded", "process", one.ID, "error", err)
	case err != nil:
		a.config.Log.Error("logs of a game session cannot be uploaded: they stay on this host", "process", one.ID, "error", err)
	default:
		a.config.Log.Info("logs of a game session were uploaded", "process", one.ID, "game_session", one.Session)
	}
	delete(u.tries, one.ID)
	u.queue = slices.DeleteFunc(slices.Clone(u.queue), func(x state.Upload) bool { return x.ID == one.ID })
	a.save()
}

// uploadLogs creates and uploads the archive.
func (a *Agent) uploadLogs(ctx context.Context, one state.Upload) error {
	ctx, cancel := context.WithTimeout(ctx, uploadTime)
	defer cancel()
	var to agentproto.LogUpload
	err := a.link.Call(ctx, &agentproto.RequestLogUpload{ProcessID: one.ID, GameSessionID: one.Session}, &to)
	if refused, ok := errors.AsType[*link.StatusError](err); ok && refused.Final() {
		return fmt.Errorf("%w: %w", errUnwanted, err)
	}
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(a.config.StateDir, uploadName)
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := bundle.Write(file, a.sourceOf(one)); err != nil {
		return err
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return err
	}
	return put(ctx, a.client, to.URL, file, size)
}

// uploadName is the prefix of archives in the state directory. Archives left behind by an earlier agent are removed.
const uploadName = "logs-upload-"

func (a *Agent) removeArchives() {
	left, _ := filepath.Glob(filepath.Join(a.config.StateDir, uploadName+"*")) // the pattern is valid
	for _, path := range left {
		os.Remove(path)
	}
}

func (a *Agent) sourceOf(one state.Upload) bundle.Source {
	s := bundle.Source{
		Title:  "Logs of server process " + one.ID + ", game session " + one.Session,
		Output: output.New(a.logDir(one.ID), a.config.Output).Files(),
		Dirs:   []bundle.Dir{{Name: "game", Path: one.Dir}, {Name: "log_dir", Path: a.ownDir(one.ID)}, {Name: "root", Path: a.config.Root}},
	}
	for _, path := range one.Paths {
		if slices.Contains(agentproto.NoLogPaths, path) {
			continue
		}
		for _, prefix := range gamePrefixes {
			if after, ok := strings.CutPrefix(strings.ReplaceAll(path, `\`, "/"), prefix); ok && !filepath.IsAbs(filepath.FromSlash(after)) {
				path = filepath.Join(one.Dir, filepath.FromSlash(after))
				break
			}
		}
		s.Paths = append(s.Paths, path)
	}
	return s
}

// put uploads an archive.
func put(ctx context.Context, client *http.Client, url string, archive *os.File, size int64) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, url, io.NopCloser(archive))
	if err != nil {
		return errors.New("the URL for the upload is invalid") // without the URL, which contains the ticket
	}
	r.ContentLength = size
	r.Header.Set("Content-Type", "application/zip")
	answer, err := client.Do(r)
	if err != nil {
		if inner := errors.Unwrap(err); inner != nil { // the outer error contains the URL
			err = inner
		}
		return fmt.Errorf("upload: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode < 300 {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 500))
	err = fmt.Errorf("upload: HTTP %d: %s", answer.StatusCode, strings.TrimSpace(string(text)))
	if answer.StatusCode == http.StatusRequestEntityTooLarge {
		return fmt.Errorf("%w: %w", errUnwanted, err)
	}
	return err
}
