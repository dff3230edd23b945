package bench

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/sigv4"
)

func TestQuantiles(t *testing.T) {
	var h, other histogram
	var all []time.Duration
	for i := range 20_000 {
		d := time.Duration(rand.Int64N(1 << (i % 40)))
		all = append(all, d)
		if i%2 == 0 {
			h.add(d)
		} else {
			other.add(d)
		}
	}
	h.merge(&other)
	slices.Sort(all)
	for _, q := range []float64{0, 0.5, 0.99, 0.999, 1} {
		want := all[min(int(q*float64(len(all))), len(all)-1)]
		if got := h.quantile(q); got < want || float64(got) > float64(want)*1.02+1 {
			t.Errorf("quantile %g is %d, want %d or up to 2 %% more", q, got, want)
		}
	}
	if empty := new(histogram).quantile(0.5); empty != 0 {
		t.Errorf("quantile of nothing is %d", empty)
	}
}

// TestBareService: the service accepts the load's own HTTP, signatures and bodies, in both protocols.
func TestBareService(t *testing.T) {
	dir := t.TempDir()
	key, err := firstKey(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	x, err := OpenBare("127.0.0.1:0", dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- x.Serve(ctx) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	for _, p := range protocols {
		c, err := dial(ctx, x.Addr(), p, key)
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		game := member{name: "GameSessionId", text: "arn:aws:gamelift:us-east-1::gamesession/fleet-1/custom-bench/gsess-1"}
		for range 2 { // the connection is kept
			answer, err := c.call("CreatePlayerSession", game, member{name: "PlayerId", text: "ann"})
			if err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
			if id := textAfter(answer, "PlayerSessionId", "psess-", playerSessionLength); len(id) != playerSessionLength {
				t.Errorf("%s: player session id %q in %q", p.name, id, answer)
			}
		}
		if _, err := c.call("CreatePlayerSession", game); err == nil || !strings.Contains(err.Error(), "PlayerId") {
			t.Errorf("%s: a request without PlayerId gave %v", p.name, err)
		}
		c.signer.secret, c.signer.second, c.signer.credential = "wrong", 0, sigv4.Credential{}
		if _, err := c.call("CreatePlayerSession", game, member{name: "PlayerId", text: "ann"}); err == nil || !strings.Contains(err.Error(), "InvalidSignature") {
			t.Errorf("%s: a request signed with another key gave %v", p.name, err)
		}
	}
	g, err := linkclient.Dial(ctx, linkclient.Options{URL: "ws://" + x.Addr(), Process: "p", Compute: "c", Fleet: "f", Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Drop()
	if err := g.AcceptPlayer(ctx, "arn", "psess-1"); err != nil {
		t.Error(err)
	}
}

func TestUnknownScenario(t *testing.T) {
	if _, err := Run(t.Context(), Options{Scenarios: []string{"player"}}); err == nil || !strings.Contains(err.Error(), "players") {
		t.Errorf("got %v, want an error that lists the names", err)
	}
}

// The soak reads the service's own measurements with Prometheus' parser, which panics without a scheme of names.
func TestMetricsAreRead(t *testing.T) {
	x := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE muster_commit_seconds histogram\nmuster_commit_seconds_bucket{le=\"+Inf\"} 3\nmuster_commit_seconds_sum 1\nmuster_commit_seconds_count 3\n")
	}))
	defer x.Close()
	families, err := (&server{addr: x.Listener.Addr().String()}).metrics(t.Context())
	if err != nil || families["muster_commit_seconds"].GetMetric()[0].GetHistogram().GetSampleCount() != 3 {
		t.Errorf("got %v %v", families, err)
	}
}

func TestAllocatedBy(t *testing.T) {
	const profile = "heap profile: 3: 33570816 [9: 1] @ heap/1048576\n" +
		"2: 33554432 [2: 33554432] @ 0x1 0x2\n#\t0x1\tdb/manual.New+0x20\t/db/manual.go:20\n#\t0x2\tdb.open+0x1\t/db/db.go:1\n\n" +
		"1: 16384 [1: 16384] @ 0x1 0x3\n#\t0x1\tdb/manual.New+0x20\t/db/manual.go:20\n\n" +
		"0: 0 [4: 80] @ 0x1 0x4\n#\t0x1\tdb/manual.New+0x20\t/db/manual.go:20\n\n" +
		"5: 5000000 [5: 5000000] @ 0x5\n#\t0x5\tdb/manual.Newer+0x1\t/db/manual.go:30\n\n\n# runtime.MemStats\n"
	// The small allocation is one of about 32 that are not sampled: it stands for half a MiB.
	if got := allocatedBy(profile, "db/manual.New"); got < 33554432+510_000 || got > 33554432+540_000 {
		t.Errorf("got %d", got)
	}
}
