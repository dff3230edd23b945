package support

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/musterhq/muster/internal/series"
	"github.com/musterhq/muster/internal/settings"
)

// Source is Gather's view of a running service.
type Source struct {
	Version  string // release of the service
	Settings settings.Loaded
	Dir      string                                 // the data directory
	Log      *Ring                                  // nil: none is kept
	Metrics  prometheus.Gatherer                    // the metrics of /metrics
	Series   *series.Store                          // nil: no metrics are kept
	Overview func(ctx context.Context) (any, error) // including attention items and the cluster
	Facts    func() map[string]any                  // about the state and its stores: only numbers
	Now      func() time.Time                       // the time of the state
}

// gatherMax limits the time for the parts that read the state or the disk. If both are silent, each further part is given up after another second.
const gatherMax = 5 * time.Second

// Gather makes the service's half of a bundle.
func Gather(ctx context.Context, s *Source, processor time.Duration) *Parts {
	limited, cancel := context.WithTimeout(ctx, gatherMax)
	defer cancel()
	p := &Parts{}
	p.Make(limited, "version.json", "release and build", func() ([]byte, error) { return indented(versionFacts(s.Version)) })
	p.Add("settings.txt", "every setting with its value and where that comes from; values that may contain a secret are shown as \"set\"", SettingsText(s.Settings))
	p.Make(limited, "overview.json", "what needs attention, totals, health, and the cluster", func() ([]byte, error) {
		overview, err := s.Overview(limited)
		if err != nil {
			return nil, err
		}
		return indented(overview)
	})
	p.Make(limited, "state.json", "numbers of the journal, the archive and the state", func() ([]byte, error) { return indented(s.Facts()) })
	if s.Log != nil {
		p.Add("log.txt", "the last lines of the log, up to 1 MiB", s.Log.Lines())
	}
	p.Make(limited, "metrics.txt", "the answer of /metrics", func() ([]byte, error) { return metricsText(s.Metrics) })
	if s.Series != nil {
		p.Make(limited, "series.csv", fmt.Sprintf("stored metrics of the last three hours, by quarters of an hour: up to %d series, the first by name", seriesMax), func() ([]byte, error) { return seriesText(s.Series, s.Now()) })
	}
	p.Machine(limited, "machine.json", s.Dir)
	p.Profile(ctx, processor)
	p.scrub(s.Settings.Secrets())
	return p
}

func versionFacts(version string) map[string]any {
	facts := map[string]any{"release": cmp.Or(version, "built from source")}
	if b, ok := debug.ReadBuildInfo(); ok {
		facts["go"], facts["module"] = b.GoVersion, b.Main.Path+" "+b.Main.Version
		build := map[string]string{}
		for _, x := range b.Settings {
			if slices.Contains([]string{"vcs.revision", "vcs.time", "vcs.modified", "GOOS", "GOARCH", "CGO_ENABLED", "-tags", "GOAMD64", "GOARM64"}, x.Key) {
				build[x.Key] = x.Value
			}
		}
		facts["build"] = build
	}
	return facts
}

// SettingsText lists all settings, with the values that a bundle may contain.
func SettingsText(s settings.Loaded) []byte {
	var b bytes.Buffer
	for _, x := range s.All(s.From) {
		fmt.Fprintf(&b, "%-36s %s", x.Name, cmp.Or(x.Bundled, "-"))
		if x.From != "" {
			fmt.Fprintf(&b, "  (%s)", x.From)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// Scrub removes words of settings that may be secrets from a text, also in JSON's escaped form. It is a safeguard, for example against a library that puts a URL into an
// error.
func Scrub(text []byte, secrets []string) []byte {
	for _, word := range secrets {
		text = bytes.ReplaceAll(text, []byte(word), []byte("…"))
		if escaped, err := json.Marshal(word); err == nil {
			text = bytes.ReplaceAll(text, bytes.Trim(escaped, `"`), []byte("…"))
		}
	}
	return text
}

// scrub applies Scrub to all parts that are texts.
func (p *Parts) scrub(secrets []string) {
	for i := range p.All {
		if x := &p.All[i]; !strings.HasSuffix(x.Name, ".pprof") {
			x.Content = Scrub(x.Content, secrets)
		}
	}
}

func metricsText(from prometheus.Gatherer) ([]byte, error) {
	families, err := from.Gather()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := e.Encode(f); err != nil {
			return nil, err
		}
		if b.Len() > PartMax {
			break
		}
	}
	return b.Bytes(), nil
}

// Limits on the stored metrics in a bundle.
const (
	seriesMax     = 2_000
	seriesMinutes = 180
	seriesSlot    = 15 // minutes
)

// seriesText returns a table of the last hours. If there are too many series, it contains the first ones by name.
func seriesText(from *series.Store, now time.Time) ([]byte, error) {
	until := now.Unix()/60 + 1
	since := until - seriesMinutes
	type named struct {
		name string
		key  series.Key
	}
	var keys []named
	from.Keys(since, func(k series.Key) bool {
		metric, dimensions, err := k.Parse()
		if err != nil {
			return true
		}
		for _, d := range dimensions {
			metric += " " + d.Name + "=" + d.Value
		}
		keys = append(keys, named{metric, k})
		return true
	})
	slices.SortFunc(keys, func(a, b named) int { return strings.Compare(a.name, b.name) })
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"series", "from", "count", "sum", "min", "max"}) // writing to a buffer never fails
	for _, k := range keys[:min(len(keys), seriesMax)] {
		slots, err := from.Minutes(k.key, since, until)
		if err != nil {
			return nil, err
		}
		for len(slots) > 0 {
			begin := slots[0].Minute - slots[0].Minute%seriesSlot
			sum := series.Stat{}
			for len(slots) > 0 && slots[0].Minute < begin+seriesSlot {
				sum.Add(slots[0].Stat)
				slots = slots[1:]
			}
			row := []string{k.name, time.Unix(begin*60, 0).UTC().Format("2006-01-02T15:04Z")}
			for _, v := range []float64{sum.Count, sum.Sum, sum.Min, sum.Max} {
				row = append(row, strconv.FormatFloat(v, 'g', 6, 64))
			}
			_ = w.Write(row)
		}
		if b.Len() > PartMax {
			break
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}
