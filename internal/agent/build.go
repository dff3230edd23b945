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

	dir      string             // its directory; empty: it is not complete yet
	cancel   context.CancelFunc // cancels the fetch; nil: none is in progress
	failures int                // consecutive ones
	problem  string             // the latest failure
	next     time.Time          // earliest next try
}

// name returns the digest of the build; "" for no build.
func (b *build) name() string {
	if b == nil {
		return ""
	}
	return b.digest.String()
}

// wantBuild makes processes start from the build that the service names, and reports whether it differs from the previous one. Processes of the
// previous build keep running from its files.
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
			a.build.url = next.url // the previous URL may have expired
		}
		return false, nil
	}
	if a.build != nil && a.build.cancel != nil {
		a.build.cancel()
	}
	a.build, a.leftovers = next, true
	return true, nil
}

// fetch downloads the wanted build to this host. After a failure it pauses and retries, and keeps what has been downloaded.
func (a *Agent) fetch(now time.Time) {
	b := a.build
	if b == nil || b.dir != "" || b.cancel != nil || now.Before(b.next) {
		return
	}
	ctx, cancel := context.WithCancel(a.context)
	b.cancel = cancel
	a.beat = time.Time{} // report to the service at once
	a.config.Log.Info("build is fetched", "build", b.id, "digest", b.digest)
	url := b.url
	go func() {
		defer cancel()
		dir, err := a.builds.Fetch(ctx, url, b.digest)
		if diskfull.Is(err) {
			err = errors.Join(err, a.builds.Prune(a.usedNow)) // the next attempt can use the space of builds no longer in use
		}
		a.do(func() { a.fetched(b, dir, url, err) })
	}()
}

// Pauses between attempts to fetch a build.
const (
	fetchPause    = time.Second
	fetchPauseMax = time.Minute
)

func (a *Agent) fetched(b *build, dir, url string, err error) {
	if b.cancel = nil; a.build != b {
		return // another build is wanted meanwhile
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
		a.asked = time.Time{} // to get another URL
	}
	pause := min(fetchPause<<min(b.failures, 10), fetchPauseMax)
	pause += time.Duration((rand.Float64() - 0.5) / 2 * float64(pause)) // so that hosts that failed together do not retry together
	b.failures++
	a.counts.fetchFailures++
	b.problem, b.next = err.Error(), time.Now().Add(pause)
	a.config.Log.Error("build cannot be fetched: the agent tries again", "build", b.id, "after", pause.Round(time.Millisecond), "error", err)
}

// usedBuilds returns the builds that are wanted or from which a process runs.
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

// usedNow is usedBuilds for other goroutines; false: the agent stops.
func (a *Agent) usedNow() (all []buildfiles.Digest, ok bool) {
	used := make(chan []buildfiles.Digest, 1)
	a.do(func() { used <- a.usedBuilds() })
	select {
	case all = <-used:
		return all, true
	case <-a.stopped:
		return nil, false
	}
}

// removeBuilds removes unused builds. It waits until the wanted set is known and the wanted build, which may share content with them, is complete.
func (a *Agent) removeBuilds() {
	if !a.leftovers || a.pruning || a.wanted == nil || a.build != nil && a.build.dir == "" {
		return
	}
	a.leftovers, a.pruning = false, true
	go func() {
		err := a.builds.Prune(a.usedNow)
		a.do(func() {
			a.pruning = false
			if err != nil {
				a.config.Log.Warn("builds that nothing uses cannot be removed", "error", err)
			}
		})
	}()
}

// rootOf returns the directory of an entry's files: that of its build, or Config.Root.
func (a *Agent) rootOf(e *entry) string {
	if e.build != "" {
		return a.build.dir
	}
	return a.config.Root
}

// describeLaunch reports for an entry whose build is missing that it is being downloaded, or why it is not.
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
