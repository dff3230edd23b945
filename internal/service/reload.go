package service

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	domainaudit "github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/settings"
)

// reload is the state that a reload of the settings needs.
type reload struct {
	turn    sync.Mutex // one reload at a time
	load    func() (settings.Loaded, error)
	level   *slog.LevelVar
	json    *atomic.Bool
	getenv  func(string) string
	current live.Value[settings.Loaded]   // in force
	digests map[string]string             // of the files that settings name, by setting, as of when they were read; guarded by turn
	marks   live.Value[map[string]uint64] // of the settings that should be the same on all nodes
}

// openReload stores the settings with which the service starts.
func (x *Service) openReload(o Options) {
	x.reload.load, x.reload.level, x.reload.json, x.reload.getenv, x.reload.digests = o.Load, o.Level, o.JSON, o.Getenv, map[string]string{}
	x.reload.current.Set(settings.Loaded{Settings: o.Settings, From: o.SourceOf})
	x.requireTLS.Set(o.Settings.TLSRequired())
	for _, part := range x.reloadables() {
		if part.files == nil {
			continue
		}
		for name, path := range part.files(o.Settings) { // before the parts read them: a file that changes meanwhile counts as changed
			x.reload.digests[name] = digestOf(path)
		}
	}
	x.reload.digests["player-flow-config"] = digestOf(o.Settings.PlayerFlowConfig) // read only at the start
	x.reload.marks.Set(o.Settings.Marks(x.reload.digests))
}

// digestMax is how many bytes of a file are hashed to detect changes. The readers of these files accept no larger ones.
const digestMax = 16 << 20

// digestOf returns a digest of a file's contents. It is empty for a file that cannot be read; the part that needs the file reports that.
func digestOf(path string) string {
	if path == "" {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(f, digestMax)); err != nil {
		return ""
	}
	return string(sum.Sum(nil))
}

// Settings returns the settings in force. For a setting that needs a restart, that is the value from the start.
func (x *Service) Settings() settings.Loaded { return x.reload.current.Get() }

// shownSettings returns the settings in force in readable form.
func (x *Service) shownSettings() []settings.Setting {
	now := x.reload.current.Get()
	return now.All(now.From)
}

// Reload reads the settings and the files that they name again, and applies those that can change without a restart. If anything is wrong, it applies
// nothing. The audit log gets an entry for the origin in the context; the door counts refusals. An error is a *domain.Refusal, caused by
// settings.Mistakes if the settings are wrong.
func (x *Service) Reload(ctx context.Context) (done settings.Reloaded, err error) {
	x.reload.turn.Lock()
	defer x.reload.turn.Unlock()
	defer func() { x.noteReload(ctx, &done, err) }()
	if x.reload.load == nil {
		return done, domain.Refuse(domain.Conflict, "this service was not started by `muster serve`, so its settings cannot be reloaded")
	}
	next, err := x.reload.load()
	if err == nil {
		err = next.Check()
	}
	if err != nil {
		return done, wrong(err, next.From)
	}
	return x.reloadTo(ctx, next)
}

// wrong returns the refusal of wrong settings.
func wrong(err error, from func(string) string) error {
	m := settings.MistakesOf(err, from)
	return &domain.Refusal{Reason: domain.Invalid, Detail: "nothing was changed: " + m.Error(), Cause: m}
}

func (x *Service) reloadTo(ctx context.Context, next settings.Loaded) (done settings.Reloaded, err error) {
	now := x.reload.current.Get()
	done = settings.Reloaded{File: next.File, Changed: []settings.Changed{}, ReadAgain: []settings.ReadAgain{}, NeedsRestart: []settings.Changed{}, Overridden: next.Overridden}
	if done.Overridden == nil {
		done.Overridden = []settings.Overridden{}
	}
	done.Node = x.nodeName()
	differ := settings.Differences(now.Settings, next.Settings)
	merged := now.With(next.Settings, settings.Reloads)
	parts, why := x.reloadables(), map[string]string{}
	for _, part := range parts {
		if part.restart == nil {
			continue
		}
		if reason := part.restart(now.Settings, next.Settings); reason != "" {
			for _, name := range part.settings {
				why[name] = reason
			}
			merged = merged.With(now.Settings, func(f reflect.StructField) bool { return slices.Contains(part.settings, f.Tag.Get("name")) })
		}
	}
	if err := merged.Check(); err != nil {
		return done, wrong(fmt.Errorf("the new values are valid only together with those that need a restart (%s): %w", strings.Join(without(differ, settings.Differences(now.Settings, merged)), ", "), err), nil)
	}
	changed := settings.Differences(now.Settings, merged)
	digests, apply, err := x.prepare(ctx, parts, merged, changed, why)
	if err != nil {
		return done, wrong(err, next.From)
	}
	for _, f := range apply {
		f()
	}
	for _, name := range differ {
		c := settings.Change(name, now.Settings, next.Settings, next.From)
		if slices.Contains(changed, name) {
			done.Changed = append(done.Changed, c)
		} else {
			c.Why = why[name]
			done.NeedsRestart = append(done.NeedsRestart, c)
		}
	}
	done.NeedsRestart = append(done.NeedsRestart, x.unread(parts, now, differ, why)...)
	done.ReadAgain = x.keepDigests(parts, merged, changed, digests)
	next.Settings = merged
	x.reload.current.Set(next)
	x.reload.marks.Set(merged.Marks(x.reload.digests))
	return done, nil
}

// unread returns the settings that name the same files as before, whose new contents only a restart reads.
func (x *Service) unread(parts []reloadable, now settings.Loaded, differ []string, why map[string]string) (all []settings.Changed) {
	files, reasons := map[string]string{"player-flow-config": now.PlayerFlowConfig}, map[string]string{"player-flow-config": "the file is read only at the start"}
	for _, part := range parts {
		if reason := why[part.settings[0]]; part.files != nil && reason != "" {
			for name, path := range part.files(now.Settings) {
				files[name], reasons[name] = path, reason
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path := files[name]; !slices.Contains(differ, name) && digestOf(path) != x.reload.digests[name] {
			all = append(all, settings.Changed{Setting: name, Before: path, After: path + " (new content)", Why: reasons[name]})
		}
	}
	return all
}

// keepDigests keeps the digests of the files that were read, and returns the files whose contents, but not names, have changed.
func (x *Service) keepDigests(parts []reloadable, s settings.Settings, changed []string, digests map[string]string) []settings.ReadAgain {
	again := []settings.ReadAgain{}
	for _, part := range parts {
		if part.files == nil {
			continue
		}
		files := part.files(s)
		for _, name := range part.settings {
			digest, known := digests[name]
			if !known {
				continue
			}
			if files[name] != "" && digest != x.reload.digests[name] && !slices.Contains(changed, name) {
				again = append(again, settings.ReadAgain{Setting: name, File: files[name]})
			}
			x.reload.digests[name] = digest
		}
	}
	return again
}

// prepare makes what all changes need. digests has the digests of the files of the affected parts.
func (x *Service) prepare(ctx context.Context, parts []reloadable, next settings.Settings, changed []string, restart map[string]string) (digests map[string]string, apply []func(), err error) {
	digests = map[string]string{}
	var errs []error
	for _, part := range parts {
		affected := slices.ContainsFunc(part.settings, func(name string) bool { return slices.Contains(changed, name) })
		if part.files != nil && restart[part.settings[0]] == "" {
			for name, path := range part.files(next) {
				digests[name] = digestOf(path)
				affected = affected || digests[name] != x.reload.digests[name]
			}
		}
		if !affected {
			continue
		}
		f, err := part.prepare(ctx, next)
		errs, apply = append(errs, err), append(apply, f)
	}
	return digests, apply, errors.Join(errs...)
}

// without returns the names in all that are not in some.
func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(some, name) })
}

// noteReload writes the result of a reload to the log and to the audit log.
func (x *Service) noteReload(ctx context.Context, done *settings.Reloaded, err error) {
	if err != nil {
		x.log.Error("settings could not be reloaded: the current ones stay in force", "error", err)
		return
	}
	names := func(all []settings.Changed) string {
		list := make([]string, len(all))
		for i := range all {
			list[i] = all[i].Setting
		}
		return strings.Join(list, " ")
	}
	files := make([]string, len(done.ReadAgain))
	var changes []domainaudit.Change
	for _, c := range done.Changed {
		changes = append(changes, domainaudit.Change{Field: c.Setting, Before: c.Before, After: c.After})
	}
	for i, f := range done.ReadAgain {
		files[i] = f.File
		changes = append(changes, domainaudit.Change{Field: f.Setting, After: "read again: " + f.File})
	}
	x.log.Info("settings reloaded", "changed", names(done.Changed), "read_again", strings.Join(files, " "), "needs_restart", names(done.NeedsRestart))
	x.audit.Record(ctx, "settings", done.Node, changes...)
}

// ReloadBySignal is Reload for a signal to the process, whose sender is not known.
func (x *Service) ReloadBySignal(ctx context.Context) (settings.Reloaded, error) {
	ctx = audit.With(ctx, audit.Origin{Principal: "signal SIGHUP", Door: audit.DoorLocal, Operation: "reload"})
	done, err := x.Reload(ctx)
	x.audit.Refused(ctx, err)
	return done, err
}
