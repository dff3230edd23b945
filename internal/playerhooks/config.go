package playerhooks

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/configfile"
	"github.com/musterhq/muster/internal/webhook"
)

// Config has the enabled hooks.
type Config struct {
	Hooks       map[Name]Hook
	Concurrency int // requests that may wait for one receiver
}

// Hook is the configuration of one hook.
type Hook struct {
	URL       string
	Timeout   time.Duration
	OnTimeout OnTimeout
}

// OnTimeout says what to do if a hook returns no usable answer: none in time, an error, or an invalid one.
type OnTimeout string

// The policies.
const (
	Allow OnTimeout = "ALLOW" // as if the hook were off
	Deny  OnTimeout = "DENY"
)

// Limits of the configuration.
const (
	DefaultTimeout     = 2 * time.Second
	DefaultConcurrency = 64

	timeoutLeast, timeoutMost = 50 * time.Millisecond, 10 * time.Second
	concurrencyMost           = 1024
)

// file is the configuration file.
type file struct {
	URL         string                `json:"url"` // of hooks that name none
	TimeoutMS   *int64                `json:"timeout_ms"`
	OnTimeout   OnTimeout             `json:"on_timeout"`
	Concurrency *int                  `json:"concurrency"`
	Hooks       map[Name]*fileSection `json:"hooks"`
}

type fileSection struct {
	URL       string    `json:"url"`
	TimeoutMS *int64    `json:"timeout_ms"`
	OnTimeout OnTimeout `json:"on_timeout"`
}

// ReadFile reads a configuration; an empty path means no hooks.
func ReadFile(path string) (Config, error) {
	if path == "" {
		return Config{}, nil
	}
	c, err := configfile.Read(path, parse)
	if err != nil {
		return Config{}, fmt.Errorf("read the hooks of players: %w", err)
	}
	return c, nil
}

// parse parses a configuration. It reports all mistakes, not only the first.
func parse(text []byte) (Config, error) {
	var f file
	if err := configfile.Decode(text, &f); err != nil {
		return Config{}, err
	}
	c := Config{Hooks: map[Name]Hook{}, Concurrency: DefaultConcurrency}
	var errs []error
	if f.Concurrency != nil {
		if c.Concurrency = *f.Concurrency; c.Concurrency < 1 || c.Concurrency > concurrencyMost {
			errs = append(errs, fmt.Errorf("concurrency: %d, want 1 to %d", c.Concurrency, concurrencyMost))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Hooks)) {
		x, err := f.hook(name)
		errs = append(errs, err)
		c.Hooks[name] = x
	}
	return c, errors.Join(errs...)
}

// hook returns the hook of one section, with the common values for those that the section omits.
func (f *file) hook(name Name) (Hook, error) {
	policy, known := names[name]
	if !known {
		return Hook{}, fmt.Errorf("hooks.%s: there is no such hook; want one of %v", name, slices.Sorted(maps.Keys(names)))
	}
	section := cmp.Or(f.Hooks[name], &fileSection{})
	x := Hook{URL: cmp.Or(section.URL, f.URL), Timeout: DefaultTimeout, OnTimeout: policy}
	var errs []error
	if x.URL == "" {
		errs = append(errs, fmt.Errorf("hooks.%s.url: empty, want one here or for all hooks", name))
	} else if err := webhook.CheckURL(x.URL); err != nil {
		errs = append(errs, fmt.Errorf("hooks.%s.url: %w", name, err))
	}
	for _, ms := range []*int64{f.TimeoutMS, section.TimeoutMS} {
		if ms == nil {
			continue
		}
		if *ms < timeoutLeast.Milliseconds() || *ms > timeoutMost.Milliseconds() {
			errs = append(errs, fmt.Errorf("hooks.%s.timeout_ms: %d, want %d to %d", name, *ms, timeoutLeast.Milliseconds(), timeoutMost.Milliseconds()))
		}
		x.Timeout = time.Duration(*ms) * time.Millisecond
	}
	for _, p := range []OnTimeout{f.OnTimeout, section.OnTimeout} {
		switch p {
		case "":
		case Allow, Deny:
			x.OnTimeout = p
		default:
			errs = append(errs, fmt.Errorf("hooks.%s.on_timeout: %q, want ALLOW or DENY", name, string(p)))
		}
	}
	return x, errors.Join(errs...)
}
