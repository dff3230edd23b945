package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/buildfetch"
	"github.com/musterhq/muster/internal/buildfiles"
	"github.com/musterhq/muster/internal/diskfull"
)

// build is the build from which server processes start.
type build struct {
	id     string
	digest buildfiles.Digest
	url    string

	dir      string             // where it is; empty: it is not complete yet
	cancel   context.CancelFunc // of the fetch; nil: none is under way
	failures int                // in a row
	problem  string             // of the latest one
	next     time.Time          // earliest next try
}

// name is the digest of the build, or "" for no build.
func (b *build) name() string {
	if b == nil {
		return ""
	}
	return b.digest.String()
}

// wantBuild makes the build that the service names the one from which processes start, and reports whether it is another one than before. Processes of the
// one before run on, from its files.
func (a *Agent) wantBuild(named *agentproto.Build) (changed bool, err error) {
	var next *build
	if named != nil {
		digest, err := buildfiles.ParseDigest(named.Digest)
		if err != nil {
			return false, fmt.Errorf("build %s: %w", named.BuildID, err)
		}
		next = &build{id: named.BuildID, digest: digest, url: named.URL}
	}
	if next.name() == a.build.name() {
		if next != nil {
			a.build.url = next.url // the one before may have expired
		}
		return false, nil
	}
	if a.build != nil && a.build.cancel != nil {
		a.build.cancel()
	}
	a.build, a.leftovers = next, true
	return true, nil
}

// fetch brings the wanted build to this host. A failure is tried again after a pause; what has come by then stays.
func (a *Agent) fetch(now time.Time) {
	b := a.build
	if b == nil || b.dir != "" || b.cancel != nil || now.Before(b.next) {
		return
	}
	ctx, cancel := context.WithCancel(a.context)
	b.cancel = cancel
	a.beat = time.Time{} // the service wants to know at once
	a.config.Log.Info("build is fetched", "build", b.id, "digest", b.digest)
	url, keep := b.url, a.usedBuilds()
	go func() {
		defer cancel()
		dir, err := a.builds.Fetch(ctx, url, b.digest)
		if diskfull.Is(err) {
			err = errors.Join(err, a.builds.Prune(keep...)) // the next try has the room of what is in use no more
		}
		a.do(func() { a.fetched(b, dir, url, err) })
	}()
}

// Pauses between the tries to fetch a build.
const (
	fetchPause    = time.Second
	fetchPauseMax = time.Minute
)

func (a *Agent) fetched(b *build, dir, url string, err error) {
	if b.cancel = nil; a.build != b {
		return // another one is wanted meanwhile
	}
	a.beat, a.leftovers = time.Time{}, true
	if err == nil {
		a.counts.fetches++
		b.dir, b.problem, b.failures = dir, "", 0
		a.config.Log.Info("build is complete", "build", b.id, "dir", dir)
		return
	}
	if url == "" {
		err = errors.New("the service does not have the files of this build")
	}
	if url == "" || errors.Is(err, buildfetch.ErrTicket) {
		a.asked = time.Time{} // for another URL
	}
	pause := min(fetchPause<<min(b.failures, 10), fetchPauseMax)
	pause += time.Duration((rand.Float64() - 0.5) / 2 * float64(pause)) // hosts that failed together do not try together
	b.failures++
	a.counts.fetchFailures++
	b.problem, b.next = err.Error(), time.Now().Add(pause)
	a.config.Log.Error("build cannot be fetched: the agent tries again", "build", b.id, "after", pause.Round(time.Millisecond), "error", err)
}

// usedBuilds are the builds that are wanted, or from which a process runs.
func (a *Agent) usedBuilds() (all []buildfiles.Digest) {
	if a.build != nil {
		all = append(all, a.build.digest)
	}
	for _, s := range a.running {
		if digest, err := buildfiles.ParseDigest(s.build); err == nil {
			all = append(all, digest)
		}
	}
	return all
}

// removeBuilds removes the builds that nothing uses. It waits until the wanted set is known, and its build, which may share content with them, is complete.
func (a *Agent) removeBuilds() {
	if !a.leftovers || a.pruning || a.wanted == nil || a.build != nil && a.build.dir == "" {
		return
	}
	a.leftovers, a.pruning = false, true
	keep := a.usedBuilds()
	go func() {
		err := a.builds.Prune(keep...)
		a.do(func() {
			a.pruning = false
			if err != nil {
				a.config.Log.Warn("builds that nothing uses cannot be removed", "error", err)
			}
		})
	}()
}

// rootOf is the directory of the files of an entry: that of its build, or Config.Root.
func (a *Agent) rootOf(e *entry) string {
	if e.build != "" {
		return a.build.dir
	}
	return a.config.Root
}

// describeLaunch says of an entry whose build is not there yet that it is on its way, or why it is not.
func (a *Agent) describeLaunch(e *entry, now time.Time) agentproto.LaunchState {
	l := e.describe(now)
	if e.build == "" || a.build.dir != "" {
		return l
	}
	l.State = agentproto.LaunchFetching
	if a.build.problem != "" {
		reason := "build " + a.build.id + " cannot be fetched: " + a.build.problem
		l.Cause, l.Reason = agentproto.CauseBuild, agentproto.Text(reason)
		if a.build.cancel == nil {
			l.State, l.NextTryMillis = agentproto.LaunchBackingOff, a.build.next.UnixMilli()
		}
	}
	return l
}
