package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/exit"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/policy"
)

// fakeOutput returns what an agent would send, and records what was asked.
func fakeOutput(asked *string, pieces []string, last, refusal error) Output {
	return func(process fleet.Key, bytes, lines int, follow bool) (func(context.Context) (string, bool, error), func(), error) {
		*asked = process.String()
		if refusal != nil {
			return nil, nil, refusal
		}
		return func(context.Context) (string, bool, error) {
			if len(pieces) == 0 {
				return "", false, last
			}
			p := pieces[0]
			pieces = pieces[1:]
			return strings.TrimPrefix(p, "!"), strings.HasPrefix(p, "!"), nil
		}, func() {}, nil
	}
}

func TestLogs(t *testing.T) {
	o := newOffice(t)
	o.ready("alive")
	gone := o.ready("gone")
	o.do(&hosting.ReportExit{Process: gone, Event: "SERVER_PROCESS_CRASHED", Exit: exit.Report{Reason: "SERVER_PROCESS_CRASHED", Signal: "SIGSEGV", Output: "one\ntwo\nthree\n"}})
	absent := domain.Refuse(domain.Conflict, "no agent of compute rack/host is connected")
	var asked string
	for name, c := range map[string]struct {
		path         string
		pieces       []string
		last, refuse error
		status       int
		body         string
		trailer      string
		note         string
	}{
		"output":               {"alive?tail=5&follow=true", []string{"a\n", "!b\n"}, io.EOF, nil, 200, "a\n\n[muster: output was left out here, because it came faster than it was read]\nb\n", "", ""},
		"an end with a reason": {"fleet-1/rack/host/alive", []string{"a\n"}, errors.New("the agent is silent"), nil, 200, "a\n", "the agent is silent", ""},
		"no output":            {"alive", nil, io.EOF, nil, 200, "", "", ""},
		"the agent refuses":    {"alive", nil, errors.New("no such process"), nil, 404, "no such process", "", ""},
		"no agent":             {"alive", nil, nil, absent, 409, "no agent of compute rack/host is connected", "", ""},
		"too many":             {"alive", nil, nil, domain.Refuse(domain.Overloaded, "64 readers"), 503, "64 readers", "", ""},
		"an ended process":     {"gone", nil, nil, absent, 200, "one\ntwo\nthree\n", "", "no agent of compute rack/host is connected"},
		"its last line":        {"gone?tail=1", nil, errors.New("no longer kept"), nil, 200, "three\n", "", "no longer kept"},
		"an unknown process":   {"nothing", nil, nil, nil, 404, "process nothing not found", "", ""},
		"an unknown compute":   {"fleet-1/x/nothing", nil, nil, nil, 404, "process fleet-1/x/nothing not found", "", ""},
		"an unknown game":      {"arn:aws:gamelift:us-east-1::gamesession/x", nil, nil, nil, 404, "game session x not found", "", ""},
		"a wrong tail":         {"alive?tail=0", nil, nil, nil, 400, "want a number of lines from 1 to 100000", "", ""},
		"a wrong follow":       {"alive?follow=1", nil, nil, nil, 400, "want true or false", "", ""},
	} {
		o.door.config.Output = fakeOutput(&asked, c.pieces, c.last, c.refuse)
		w := httptest.NewRecorder()
		o.door.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Prefix+LogsPrefix+c.path, nil))
		answer := w.Result()
		body, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != c.status || c.status == 200 && string(body) != c.body || !strings.Contains(string(body), c.body) {
			t.Errorf("%s: %d %s", name, answer.StatusCode, body)
		}
		if got := answer.Trailer.Get(LogsError); got != c.trailer {
			t.Errorf("%s: trailer %q", name, got)
		}
		if got := answer.Header.Get(LogsNote); !strings.Contains(got, c.note) || (c.note == "") != (got == "") {
			t.Errorf("%s: note %q", name, got)
		}
	}
	o.door.config.Output = fakeOutput(&asked, nil, io.EOF, nil)
	if status, _ := o.ask("logs/fleet-1/rack/host/forgotten"); status != 200 || asked != "fleet-1/rack/host/forgotten" {
		t.Errorf("a process that the service has forgotten: %d, asked for %s", status, asked)
	}
	r := httptest.NewRequest(http.MethodGet, Prefix+LogsPrefix+"alive", nil)
	r.Header.Set("Authorization", "x")
	w := httptest.NewRecorder()
	if o.door.ServeHTTP(w, r); w.Code != http.StatusForbidden {
		t.Errorf("without a key: %d", w.Code)
	}
}

// fakeNodes is a cluster in which another node has the agents.
type fakeNodes struct {
	node      string
	forwarded bool // the request comes from another node
	asked     []fleet.Key
	down      error
}

func (n *fakeNodes) Connected(_ context.Context, processes []fleet.Key) string {
	n.asked = processes
	return n.node
}

func (n *fakeNodes) Forward(w http.ResponseWriter, r *http.Request, node string, private bool, unreachable func(error)) {
	if n.down != nil {
		unreachable(n.down)
		return
	}
	_, _ = fmt.Fprintf(w, "forwarded %s to %s, private %t", r.URL, node, private)
}

func (n *fakeNodes) Self() string     { return "node-1" }
func (n *fakeNodes) Others() []string { return []string{"node-2"} }

func (n *fakeNodes) Forwarded(*http.Request) bool { return n.forwarded }

// In a cluster an agent has its connection at one node: the others forward to it, once.
func TestLogsOfAnotherNode(t *testing.T) {
	o := newOffice(t)
	o.ready("alive")
	const none = "no agent of compute rack/host is connected"
	for name, c := range map[string]struct {
		nodes   fakeNodes
		refusal error
		status  int
		says    string
	}{
		"at another node":             {fakeNodes{node: "n2"}, domain.Refuse(domain.Conflict, none), 200, "forwarded /operator/v1/logs/alive to n2, private true"},
		"at none":                     {fakeNodes{}, domain.Refuse(domain.Conflict, none), 409, none},
		"forwarded here in error":     {fakeNodes{node: "n2", forwarded: true}, domain.Refuse(domain.Conflict, none), 409, none},
		"that node is gone":           {fakeNodes{node: "n2", down: errors.New("a broken line")}, domain.Refuse(domain.Conflict, none), 503, "node n2, to which the agent is connected, cannot be reached: a broken line"},
		"here, but not at the moment": {fakeNodes{node: "n2"}, domain.Refuse(domain.Overloaded, "too many readers"), 503, "too many readers"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked string
			o.door.config.Nodes, o.door.config.Private = &c.nodes, func(*http.Request) bool { return true }
			o.door.config.Output = fakeOutput(&asked, nil, nil, c.refusal)
			if status, body := o.ask("logs/alive"); status != c.status || !strings.Contains(body, c.says) {
				t.Errorf("got %d %s", status, body)
			}
			if c.status == 200 && (len(c.nodes.asked) != 1 || c.nodes.asked[0].Process != "alive") {
				t.Errorf("asked for %v", c.nodes.asked)
			}
		})
	}
}

// Output whose last part was sent long ago ends without an error: its reader gets the end, and the reason.
func TestEndAfterSilence(t *testing.T) {
	port := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		o := openedOutput{text: "part", next: func(context.Context) (string, bool, error) {
			_ = control.SetWriteDeadline(time.Unix(1, 0)) // as if the time for the part was over
			return "", false, errors.New("the agent is silent")
		}}
		o.copyTo(r.Context(), w, control)
	}))
	defer port.Close()
	answer, err := http.Get(port.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "part" || answer.Trailer.Get(LogsError) != "the agent is silent" {
		t.Errorf("got %q, %v, %q", text, err, answer.Trailer)
	}
}

func TestExplanationsHideOutputThatPoliciesDeny(t *testing.T) {
	o := newOffice(t)
	gone := o.ready("gone")
	o.do(&hosting.ReportExit{Process: gone, Event: "SERVER_PROCESS_CRASHED", Exit: exit.Report{Reason: "SERVER_PROCESS_CRASHED", Signal: "SIGSEGV", Output: "a secret\n"}})
	for effect, shown := range map[string]bool{"Allow": true, "Deny": false} {
		document := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"},{"Effect":"` + effect + `","Action":"` + policy.ReadOutput + `","Resource":"*"}]}`
		o.door.config.Authenticate = func(*http.Request, []byte) (identity.Principal, int, error) {
			return principal(t, time.Now, identity.ReadOnly, document), http.StatusOK, nil
		}
		w := httptest.NewRecorder()
		o.door.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Prefix+"explain/process/gone", nil))
		if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "a secret") != shown {
			t.Errorf("%s: %d %s", effect, w.Code, w.Body)
		}
		page, err := o.door.Explain(t.Context(), "process", "gone", shown)
		if err != nil || strings.Contains(string(page), "a secret") != shown {
			t.Errorf("for the console, %s: %s %v", effect, page, err)
		}
	}
}
