package operator

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/exit"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/membership"
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
		o.door.ServeHTTP(w, httptest.NewRequest(http.MethodGet, LogsPrefix+c.path, nil))
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
	r := httptest.NewRequest(http.MethodGet, LogsPrefix+"alive", nil)
	r.Header.Set("Authorization", "x")
	w := httptest.NewRecorder()
	if o.door.ServeHTTP(w, r); w.Code != http.StatusForbidden {
		t.Errorf("without a key: %d", w.Code)
	}
}

// In a cluster an agent has its connection at one node: the refusal names the node that was asked, and the others.
func TestLogsOfAnotherNode(t *testing.T) {
	o := newOffice(t)
	o.ready("alive")
	for i, name := range []string{"n1", "n2"} {
		o.do(&membership.BeginNode{Node: domain.UUID{byte(i + 1)}, Name: name})
	}
	o.door.config.Node = "n1"
	var asked string
	o.door.config.Output = fakeOutput(&asked, nil, nil, domain.Refuse(domain.Conflict, "no agent of compute rack/host is connected"))
	status, body := o.ask("logs/alive")
	if want := "no agent of compute rack/host is connected to node n1, which was asked; an agent has its connection at one node: ask the others (n2)"; status != 409 || !strings.Contains(body, want) {
		t.Errorf("got %d %s", status, body)
	}
}
