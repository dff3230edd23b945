// Package sdnotify tells systemd about this process, if systemd started it: that it is ready, works, begins again, and stops. sd_notify(3) describes the protocol.
package sdnotify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"
)

// Manager is the service manager that started this process. Nothing that it is told fails: the service works without it. A nil Manager is none.
type Manager struct {
	conn     net.Conn
	watchdog time.Duration // the manager ends this process when it was silent for that long; 0: it does not
	log      *slog.Logger
}

// sendWait bounds the wait for a manager that does not read.
const sendWait = time.Second

// Connect finds the manager by the variables that it set: NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. Without them it returns nil.
func Connect(getenv func(string) string, pid int, log *slog.Logger) (*Manager, error) {
	name := getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil, nil
	}
	if !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "@") { // vsock is for virtual machines
		return nil, fmt.Errorf("NOTIFY_SOCKET: %q; want an absolute path, or a name after @", name)
	}
	m := &Manager{log: log}
	if text := getenv("WATCHDOG_USEC"); text != "" {
		µs, err := strconv.ParseInt(text, 10, 64)
		if err != nil || µs <= 0 || µs > int64(1<<63-1)/1000 {
			return nil, fmt.Errorf("WATCHDOG_USEC: %q; want a number of microseconds", text)
		}
		if of := getenv("WATCHDOG_PID"); of == "" || of == strconv.Itoa(pid) { // it may be inherited from a program around this one
			m.watchdog = time.Duration(µs) * time.Microsecond
		}
	}
	conn, err := net.Dial("unixgram", name)
	if err != nil {
		return nil, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	m.conn = conn
	return m, nil
}

// Close ends the connection.
func (m *Manager) Close() {
	if m != nil {
		m.conn.Close()
	}
}

// Ready says that the service has started, or has finished what Reloading announced.
func (m *Manager) Ready(status string) { m.send("READY=1", status) }

// Reloading says that the service reads its settings again, or begins again by itself. Ready ends it.
func (m *Manager) Reloading(status string) {
	if now := monotonic(); now != "" { // a unit of Type=notify-reload tells by it which request this answers
		m.send("RELOADING=1\nMONOTONIC_USEC="+now, status)
		return
	}
	m.send("RELOADING=1", status)
}

// Stopping says that the service is about to end.
func (m *Manager) Stopping() { m.send("STOPPING=1", "stopping") }

// send sends assignments, or none, and the text that systemctl status shows.
func (m *Manager) send(assignment, status string) {
	if m == nil {
		return
	}
	var lines []string
	if assignment != "" {
		lines = append(lines, assignment)
	}
	if status != "" {
		lines = append(lines, "STATUS="+strings.Join(strings.Fields(status), " ")) // a line break would begin another assignment
	}
	_ = m.conn.SetWriteDeadline(time.Now().Add(sendWait))
	if _, err := m.conn.Write([]byte(strings.Join(lines, "\n"))); err != nil {
		m.log.Warn("systemd does not accept a notification", "error", err)
	}
}

// statusEvery is how often the status is brought up to date for a manager without a watchdog.
const statusEvery = 15 * time.Second

// Watch feeds the watchdog until ctx ends, as long as works returns nil; it returns the text for the status as well. A call that does not return counts as an error,
// and is not repeated before it has returned.
func (m *Manager) Watch(ctx context.Context, works func(context.Context) (status string, err error)) {
	if m == nil {
		return
	}
	every := statusEvery
	if m.watchdog > 0 {
		every = m.watchdog / 4
	}
	type verdict struct {
		status string
		err    error
	}
	var (
		asked  chan verdict
		shown  string
		failed bool
	)
	again := time.NewTicker(every)
	defer again.Stop()
	for {
		if asked == nil {
			asked = make(chan verdict, 1)
			go func(answer chan<- verdict) {
				limited, cancel := context.WithTimeout(ctx, every)
				defer cancel()
				var v verdict
				v.status, v.err = works(limited)
				answer <- v
			}(asked)
		}
		var v verdict
		select {
		case v = <-asked:
			asked = nil
			select {
			case <-again.C:
			case <-ctx.Done():
				return
			}
		case <-again.C:
			v.err = errors.New("it does not answer")
		case <-ctx.Done():
			return
		}
		if v.err != nil {
			if !failed && m.watchdog > 0 {
				m.log.Error("the program does not work: it stops feeding systemd's watchdog, which restarts it", "error", v.err, "watchdog", m.watchdog)
			}
			failed, shown = true, ""
			m.send("", "does not work: "+v.err.Error())
			continue
		}
		failed = false
		switch {
		case m.watchdog > 0 && v.status != shown:
			m.send("WATCHDOG=1", v.status)
		case m.watchdog > 0:
			m.send("WATCHDOG=1", "")
		case v.status != shown:
			m.send("", v.status)
		}
		shown = v.status
	}
}
