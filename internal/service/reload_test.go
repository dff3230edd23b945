package service

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/settings"
)

// Every setting that is declared reloadable has a part that reloads it, and vice versa.
func TestReloadablesAreDeclared(t *testing.T) {
	taken := map[string]bool{}
	for _, part := range new(Service).reloadables() {
		for _, name := range part.settings {
			if taken[name] {
				t.Errorf("two parts take %s", name)
			}
			taken[name] = true
		}
	}
	for field := range reflect.TypeFor[settings.Settings]().Fields() {
		name := field.Tag.Get("name")
		if settings.Reloads(field) != taken[name] {
			t.Errorf("%s: declared with reload:%q, and a part of reloadables takes it: %t", name, field.Tag.Get("reload"), taken[name])
		}
		delete(taken, name)
	}
	for name := range taken {
		t.Errorf("a part takes %s, which is no setting", name)
	}
}

// reloading is a service whose settings tests change.
type reloading struct {
	*testing.T
	*Service
	next  *live.Value[settings.Settings]
	level *slog.LevelVar
	json  *atomic.Bool
}

func newReloading(t *testing.T, change func(*settings.Settings)) *reloading {
	t.Helper()
	s := settings.Defaults()
	s.Data, s.Listen = t.TempDir(), "127.0.0.1:0"
	if change != nil {
		change(&s)
	}
	x := &reloading{T: t, next: live.Of(s), level: new(slog.LevelVar), json: new(atomic.Bool)}
	o := NewOptions(s, slog.New(slog.DiscardHandler), nil)
	o.Level, o.JSON = x.level, x.json
	o.Load = func() (settings.Loaded, error) {
		return settings.Loaded{Settings: x.next.Get(), File: "muster.json"}, nil
	}
	var err error
	if x.Service, err = StartWith(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return x
}

func (x *reloading) set(change func(*settings.Settings)) (settings.Reloaded, error) {
	s := x.next.Get()
	change(&s)
	x.next.Set(s)
	return x.Reload(audit.With(x.Context(), audit.Origin{Principal: "ann", Door: audit.DoorLocal, Operation: "reload"}))
}

func (x *reloading) mustSet(change func(*settings.Settings)) settings.Reloaded {
	x.Helper()
	done, err := x.set(change)
	if err != nil {
		x.Fatal(err)
	}
	return done
}

func names(all []settings.Changed) (names []string) {
	for _, c := range all {
		names = append(names, c.Setting)
	}
	return names
}

// Settings that can change are in force when the reload returns. Others are reported, and stay unchanged.
func TestReloadChangesWhatCanChange(t *testing.T) {
	x := newReloading(t, nil)
	done := x.mustSet(func(s *settings.Settings) {
		s.LogLevel, s.LogFormat, s.LimitFleets, s.TrustedProxies, s.NotifyEvents = "debug", "json", 7, "10.0.0.0/8", "https://hooks.example/secret-path"
		s.LimitConnectionsPerAddress, s.MetricsSeries, s.SnapshotEvery, s.DiskReserve = 17, 99, 9<<20, 32<<20
	})
	if got := names(done.Changed); !slices.Equal(got, []string{"log-level", "log-format", "limit-fleets", "limit-connections-per-address", "metrics-series", "disk-reserve", "notify-events", "trusted-proxies"}) {
		t.Errorf("changed: %v", got)
	}
	if len(done.NeedsRestart) != 1 || done.NeedsRestart[0].Setting != "snapshot-every" || done.NeedsRestart[0].After != "9MiB" {
		t.Errorf("needs a restart: %+v", done.NeedsRestart)
	}
	c := x.engine.CellConfig()
	if x.level.Level() != slog.LevelDebug || !x.json.Load() || c.Hosting.FleetsMax != 7 || c.Notify == nil || !c.Notify.Bus || len(x.proxies.Networks()) != 1 || x.limits.Limits().PerAddress != 17 || x.room.reserve.Load() != 32<<20 {
		t.Errorf("in force: level %s, %+v, %v, %+v", x.level.Level(), c, x.proxies.Networks(), x.limits.Limits())
	}
	if _, most := x.kept.Limits(); most != 99 {
		t.Errorf("%d series of kept metrics, want 99", most)
	}
	if i := slices.IndexFunc(done.Changed, func(c settings.Changed) bool { return c.Setting == "notify-events" }); strings.Contains(done.Changed[i].After, "secret-path") {
		t.Errorf("the answer has a secret: %+v", done.Changed[i])
	}
	again := x.mustSet(func(*settings.Settings) {})
	if len(again.Changed) != 0 || len(again.NeedsRestart) != 1 {
		t.Errorf("the second reload: %+v, want nothing but what needs a restart", again)
	}
	back := x.mustSet(func(s *settings.Settings) {
		d := settings.Defaults()
		d.Data, d.Listen = s.Data, s.Listen
		*s = d
	})
	if x.level.Level() != slog.LevelInfo || x.json.Load() || x.engine.CellConfig().Hosting.FleetsMax != settings.Defaults().LimitFleets || x.engine.CellConfig().Notify != nil || len(back.NeedsRestart) != 0 {
		t.Errorf("removed settings do not have their defaults again: %+v", back)
	}
	page, err := audit.Read(t.Context(), x.engine, audit.Filter{}, 0, 10)
	if err != nil || len(page.Entries) != 3 || page.Entries[0].Kind != "settings" || page.Entries[0].What != "reload" || page.Entries[0].Who != "ann" {
		t.Errorf("the entries of the audit log: %+v, %v; want three", page.Entries, err)
	}
}

// A mistake in one setting keeps all others from changing.
func TestReloadTakesAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	people := filepath.Join(dir, "people.json")
	x := newReloading(t, nil)
	before := x.Settings().Settings
	for name, change := range map[string]func(*settings.Settings){
		"a wrong value":           func(s *settings.Settings) { s.LogEvents = -1 },
		"a file that is not here": func(s *settings.Settings) { s.People = people },
		"a certificate that is not here": func(s *settings.Settings) { // found by its part, after the values were checked
			s.AuditExport = "syslog+tls://127.0.0.1:9?ca=" + filepath.Join(dir, "none.pem")
		},
		"too many connections": func(s *settings.Settings) { s.LimitConnections = 1 << 30 },
	} {
		_, err := x.set(func(s *settings.Settings) {
			*s = before
			s.LogLevel, s.LimitFleets = "error", 3
			change(s)
		})
		m, ok := errors.AsType[settings.Mistakes](err)
		if !ok || len(m) != 1 {
			t.Errorf("%s: %v, want one mistake", name, err)
		}
		if x.level.Level() == slog.LevelError || x.engine.CellConfig().Hosting.FleetsMax == 3 || x.Settings().Settings != before {
			t.Errorf("%s: a part of it is in force", name)
		}
	}
}

// A reload that fails keeps the identity provider of players with the keys that were fetched from it, for the next one that succeeds.
func TestFailedReloadKeepsTheKeysOfPlayers(t *testing.T) {
	x := newReloading(t, func(s *settings.Settings) {
		s.PlayerFlow, s.PlayerOIDCIssuer, s.PlayerOIDCAudience = true, "https://id.example.com", "game"
	})
	before, in := x.playersOIDC.OIDC, x.Settings().Settings
	if _, err := x.set(func(s *settings.Settings) {
		s.PlayerOIDCAudience, s.AuditExport = "other", "syslog+tls://127.0.0.1:9?ca="+filepath.Join(t.TempDir(), "none.pem")
	}); err == nil {
		t.Fatal("a certificate that is not here was accepted")
	}
	x.mustSet(func(s *settings.Settings) {
		*s = in
		s.PlayerLoginsPerAddress++
	})
	if x.playersOIDC.OIDC != before {
		t.Error("the provider was replaced although its settings are the same")
	}
}

// The content of files that settings name is read again although the settings are the same, and a file that is half written changes nothing.
func TestReloadReadsFilesAgain(t *testing.T) {
	people := filepath.Join(t.TempDir(), "people.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(people, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{}`)
	x := newReloading(t, func(s *settings.Settings) { s.People = people })
	same := func(*settings.Settings) {}
	if done := x.mustSet(same); len(done.ReadAgain) != 0 {
		t.Errorf("read again although it is the same: %+v", done.ReadAgain)
	}
	write(`{"own": {"off": tr`)
	if _, err := x.set(same); err == nil || !strings.Contains(err.Error(), people) || x.people.WhyNoPasskeys() == turnedOff {
		t.Errorf("half a file: %v", err)
	}
	write(`{"own": {"off": true}}`)
	done := x.mustSet(same)
	if len(done.ReadAgain) != 1 || done.ReadAgain[0] != (settings.ReadAgain{Setting: "people", File: people}) || x.people.WhyNoPasskeys() != turnedOff {
		t.Errorf("the file was not read again: %+v, %q", done, x.people.WhyNoPasskeys())
	}
}

const turnedOff = "The file of --people turns off sign-in for this service's own people."

// Simultaneous reloads are executed one after the other, while requests are served.
func TestReloadsAtTheSameTime(t *testing.T) {
	x := newReloading(t, func(s *settings.Settings) { s.PlayerFlow = true })
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() {
			for j := range 5 {
				s := x.Settings().Settings
				s.LimitFleets, s.LimitConnectionsPerAddress, s.PlayerOrigins = 10+i*5+j, 100+i, "https://a.example"
				s.NotifyTopics = "arn:aws:sns:us-east-1:000000000000:t=https://hooks.example/" + string(rune('a'+i))
				x.next.Set(s)
				if _, err := x.Reload(t.Context()); err != nil {
					t.Error(err)
				}
				x.shownSettings()
				x.engine.CellConfig()
			}
		})
	}
	work.Wait()
	if got, want := x.engine.CellConfig().Hosting.FleetsMax, x.Settings().LimitFleets; got != want {
		t.Errorf("%d fleets are allowed, and the settings say %d", got, want)
	}
}

// The mistakes of several settings are reported separately, each with the place of its value.
func TestMistakesNameTheirPlace(t *testing.T) {
	s := settings.Defaults()
	s.LogLevel, s.LimitFleets = "loud", 0
	places := map[string]string{"log-level": "muster.json:3", "limit-fleets": "--limit-fleets"}
	m := settings.MistakesOf(s.Check(), func(name string) string { return places[name] })
	got := map[string]string{}
	for _, x := range m {
		got[x.Setting] = x.At
	}
	if !maps.Equal(got, places) {
		t.Errorf("got %+v", m)
	}
}

// A file whose new content needs a restart is reported, because the names in the settings are the same.
func TestReloadReportsFilesThatNeedARestart(t *testing.T) {
	dir := t.TempDir()
	hooks, options := filepath.Join(dir, "hooks.json"), filepath.Join(dir, "flow.json")
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(hooks, `{"url": "https://backend.example/hooks", "hooks": {"BeforeInvite": {}}}`)
	write(options, `{}`)
	x := newReloading(t, func(s *settings.Settings) { s.PlayerFlow, s.PlayerHooks, s.PlayerFlowConfig = true, hooks, options })
	write(hooks, `{"url": "https://backend.example/hooks", "hooks": {"BeforeInvite": {}, "DecidePenalty": {}}}`)
	write(options, `{"PartyServiceConfig": {"maxMembers": 4}}`)
	for range 2 { // until the restart
		done := x.mustSet(func(*settings.Settings) {})
		if got := names(done.NeedsRestart); !slices.Equal(got, []string{"player-flow-config", "player-hooks"}) || len(done.ReadAgain) != 0 {
			t.Errorf("needs a restart: %+v; read again: %+v", done.NeedsRestart, done.ReadAgain)
		}
	}
}

// A reload that is overtaken by the stop of the service leaves no export of telemetry behind.
func TestReloadDuringTheStop(t *testing.T) {
	x := newReloading(t, nil)
	x.endTelemetry(t.Context()) // as the stop does
	if done := x.mustSet(func(s *settings.Settings) { s.OTLPEndpoint = "http://127.0.0.1:1" }); !slices.Equal(names(done.Changed), []string{"otlp-endpoint"}) {
		t.Errorf("changed: %+v", done.Changed)
	}
	if x.otlp.Get() != nil {
		t.Error("a service that stops has begun to export telemetry")
	}
}
