package service

import (
	"errors"
	"net/http"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/internal/sessionlogs"
)

// sessionLogsDir is the subdirectory of the data directory with the logs of game sessions.
const sessionLogsDir = "session-logs"

// openSessionLogs opens the store for the logs of game sessions, and returns its door.
func (x *Service) openSessionLogs() (*sessionlogs.Door, error) {
	s := x.settings
	if s.SessionLogsMax == 0 {
		return nil, nil
	}
	store, err := sessionlogs.Open(sessionlogs.Options{
		Dir: filepath.Join(s.Data, sessionLogsDir), Quota: int64(s.SessionLogsMax), Reserve: 2 * int64(s.DiskReserve), Log: x.log,
	})
	if err != nil {
		return nil, err
	}
	x.sessionLogs = store
	x.metrics.Register(
		gauge("muster_session_logs", "Game sessions whose logs are kept.", func() float64 { n, _, _ := store.Used(); return float64(n) }),
		gauge("muster_session_logs_bytes", "Bytes of the logs of game sessions in the data directory.", func() float64 { _, n, _ := store.Used(); return float64(n) }),
		gauge("muster_session_logs_bytes_limit", "Maximum size in bytes of the logs of game sessions, from --session-logs-max.", func() float64 { _, _, n := store.Used(); return float64(n) }),
	)
	config := sessionlogs.Config{Bucket: x.bucket, Store: store, Secret: x.secret, URL: webURL(x.publicURL), Log: x.log}
	if x.node != nil {
		config.Net = x.node.Requests()
	}
	door := sessionlogs.New(config)
	x.sweeping.Go(func() { x.sweepSessionLogs(door) })
	x.questions.Handle(sessionlogs.CopiesPrefix, http.HandlerFunc(door.ServeQuestion))
	return door, nil
}

// sweepSessionLogs removes old logs until the service stops.
func (x *Service) sweepSessionLogs(door *sessionlogs.Door) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-x.running.Done():
			return
		case <-tick.C:
			err := door.Store.Sweep()
			if x.bucket != nil && x.decides(x.running) {
				err = errors.Join(err, door.SweepBucket(x.running))
			}
			if err != nil {
				x.log.Warn("old logs of game sessions cannot be removed: the service tries again in an hour", "error", err)
			}
		}
	}
}
