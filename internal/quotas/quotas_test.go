package quotas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/quota"
)

type caller string

func (c caller) Quota() string { return string(c) }

func TestParse(t *testing.T) {
	table, err := Parse("tickets=50000  MUSTERKEY/tickets=10 studio/ann/queues=3 players/tickets=7\n fleets=2")
	if err != nil {
		t.Fatal(err)
	}
	if table.Each[quota.Tickets] != 50_000 || table.Each[quota.Fleets] != 2 || table.Of[quota.HolderNamed("MUSTERKEY")][quota.Tickets] != 10 ||
		table.Of[quota.HolderNamed("studio/ann")][quota.Queues] != 3 || table.Of[quota.Players][quota.Tickets] != 7 {
		t.Errorf("%+v", table)
	}
	for setting, want := range map[string]string{
		"tickets": "want KIND=N", "tickets=0": "1 or more", "tickets=x": "1 or more", "tickets=1 tickets=2": "twice", "seats=1": "want one of", "/tickets=1": "access key before",
		strings.Repeat("tickets=1 ", entriesMax+1): "at most 1000", "tickets=99999999999999999999": "1 or more",
	} {
		if _, err := Parse(setting); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", setting, err, want)
		}
	}
	if table, err := Parse(""); err != nil || table.Each != (quota.Numbers{}) {
		t.Errorf("nothing: %+v, %v", table, err)
	}
}

// A command gets the holder of its context. A refusal names it, is counted, and is in the log for a bounded number of times.
func TestDesk(t *testing.T) {
	var log bytes.Buffer
	d, err := New("queues=1", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx := With(context.Background(), caller("MUSTERKEY"))
	cmd := &hosting.CreateQueue{}
	d.Hold(context.Background(), cmd)
	if cmd.Queue.Holder != 0 {
		t.Error("a holder without a caller")
	}
	d.Hold(ctx, cmd)
	if cmd.Queue.Holder != quota.HolderNamed("MUSTERKEY") {
		t.Errorf("holder %x", cmd.Queue.Holder)
	}
	if name, ok := d.Name(cmd.Queue.Holder); !ok || name != "MUSTERKEY" {
		t.Errorf("name %q", name)
	}
	var held quota.Held
	held.Add(cmd.Queue.Holder, 0)
	refusal := d.Live().Check(quota.Queues, &held, cmd.Queue.Holder, 1, 10_000)
	for range 100 {
		told, ok := errors.AsType[*domain.Refusal](d.Tell(ctx, refusal))
		if !ok || told.Reason != domain.LimitExceeded || told.Detail != "queues of this holder: 1; its quota queues is 1; the holder is MUSTERKEY" {
			t.Fatalf("told: %v", told)
		}
	}
	if got := testutil.ToFloat64(d.refused.WithLabelValues("queues")); got != 100 {
		t.Errorf("%v refusals are counted", got)
	}
	if n := strings.Count(log.String(), "holder=MUSTERKEY"); n != refusalsLogged {
		t.Errorf("%d lines in the log, want %d", n, refusalsLogged)
	}
	other := domain.Refuse(domain.Invalid, "x")
	if got := d.Tell(ctx, other); got != error(other) {
		t.Errorf("another refusal became %v", got)
	}
	if err := d.Set("queues=many"); err == nil || d.Live().Most(quota.Queues, 5, 0) != 1 {
		t.Error("a wrong setting replaced the one in force")
	}
	if err := d.Set("queues=2"); err != nil || d.Live().Check(quota.Queues, &held, cmd.Queue.Holder, 1, 0) != nil {
		t.Error("a new setting is not in force")
	}
}

func TestNamesAreBounded(t *testing.T) {
	d, err := New("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for i := range namesMax + 100 {
		d.Hold(With(context.Background(), caller(fmt.Sprint("machine ", i))), &hosting.CreateQueue{})
	}
	if n := d.named.Load(); n != namesMax {
		t.Errorf("%d names", n)
	}
}
