package bench

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Table has the results.
type Table struct {
	machine []string
	loads   []loadRow
	facts   []factRow
}

// loadRow is the result of a load.
type loadRow struct {
	name           string
	connections    int
	rate           float64 // requested units per second; 0: as many as possible
	perSecond      float64
	unit           string
	ofBare         float64 // share of the bare service's throughput; 0: not compared
	p50, p99, p999 time.Duration
	processor      time.Duration // of the server, for each request
	peak           int64
}

// factRow is a result that is not the throughput of a load.
type factRow struct{ name, value, target string }

// addLoad adds the result of a load; requests is the number of requests in each unit.
func (t *Table) addLoad(name, unit string, requests int, m *measured, ofBare float64) {
	row := loadRow{
		name: name, connections: m.workers, rate: m.rate, perSecond: m.perSecond(), unit: unit, ofBare: ofBare,
		p50: m.latency.quantile(0.5), p99: m.latency.quantile(0.99), p999: m.latency.quantile(0.999), peak: m.peak,
	}
	if m.units > 0 {
		row.processor = m.used / time.Duration(m.units) / time.Duration(requests)
	}
	t.loads = append(t.loads, row)
}

func (t *Table) addFact(name, target, format string, args ...any) {
	t.facts = append(t.facts, factRow{name, fmt.Sprintf(format, args...), target})
}

// WriteMarkdown writes the table in the form of docs/performance.md.
func (t *Table) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	for _, line := range t.machine {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	if len(t.loads) > 0 {
		b.WriteString("\n| load | connections | a second | of bare | p50 | p99 | p99.9 | CPU for each request | peak memory |\n")
		b.WriteString("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
		for i := range t.loads {
			r := &t.loads[i]
			name, share := r.name, "–"
			if r.rate != 0 {
				name += fmt.Sprintf(", at %s a second", thousands(int64(r.rate)))
			}
			if r.ofBare != 0 {
				share = fmt.Sprintf("%.0f %%", 100*r.ofBare)
			}
			fmt.Fprintf(&b, "| %s | %d | %s %s | %s | %s | %s | %s | %s | %s |\n", name, r.connections, thousands(int64(r.perSecond)), r.unit, share,
				milliseconds(r.p50), milliseconds(r.p99), milliseconds(r.p999), microseconds(r.processor), megabytes(r.peak))
		}
	}
	if len(t.facts) > 0 {
		b.WriteString("\n| what | reached | aim |\n| --- | ---: | ---: |\n")
		for _, r := range t.facts {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", r.name, r.value, r.target)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// describeMachine describes the machine on which the results were measured.
func (t *Table) describeMachine(dir string) {
	processor := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, ok := strings.Cut(string(info), "model name\t: "); ok {
			processor, _, _ = strings.Cut(rest, "\n")
		}
	}
	system := runtime.GOOS
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		system += " " + strings.TrimSpace(string(release))
	}
	t.machine = append(t.machine,
		fmt.Sprintf("machine: %d × %s, shared by the service and the load", runtime.NumCPU(), processor),
		fmt.Sprintf("system: %s; %s; Muster %s", system, runtime.Version(), revision()),
	)
	if took, err := syncTime(dir); err == nil {
		t.machine = append(t.machine, fmt.Sprintf("disk: 4 KiB made durable in %s (median of 200)", microseconds(took)))
	}
}

// revision returns the commit that the binary was built from, if it is known.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown origin"
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	if commit == "" {
		return info.Main.Version
	}
	return commit + changed
}

// syncTime measures a durable write in dir, which bounds the speed of any journal.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var h histogram
	block := make([]byte, 4<<10)
	for range 200 {
		began := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		h.add(time.Since(began))
	}
	return h.quantile(0.5), nil
}

// thousands formats a number as 12,345.
func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return thousands(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

func milliseconds(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

func microseconds(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f µs", float64(d)/float64(time.Microsecond))
}

func megabytes(n int64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
