package console

import (
	"net/http"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/series"
)

// candidatesMax bounds the series that are read for a graph, which shows those with the largest sums. All doors together have fewer operations
// than this.
const candidatesMax = 300

// healthGraphs returns the graphs of the service itself at this node.
func healthGraphs(kept *series.Store) []graph {
	one := func(name, family string, m measure, gauge bool) line {
		return line{Name: name, key: series.MakeKey(family), measure: m, gauge: gauge}
	}
	of := func(id, title, unit string, lines ...line) graph {
		return graph{ID: id, Title: title, Unit: unit, Counts: len(lines) > 0 && lines[0].measure == total, Lines: lines}
	}
	var outcomes []line
	for _, name := range []string{"ok", "refused", "throttled", "failed"} {
		outcomes = append(outcomes, line{Name: name, key: series.MakeKey("muster_calls_total", series.Dimension{Name: "outcome", Value: name}), measure: total})
	}
	all := []graph{
		of("calls", "Calls by outcome", "Count", outcomes...),
		of("calls-failed", "Calls that failed, by operation", "Count", keptLines(kept, "muster_calls_total", total, "door", "operation", "outcome")...),
		of("call-times", "Time of a call, by door", "Seconds", keptLines(kept, "muster_call_seconds", average, "door")...),
		of("call-sums", "Time in calls, by operation", "Seconds", keptLines(kept, "muster_call_seconds", total, "door", "operation")...),
		of("commits", "Time of a commit and its parts", "Seconds", one("commit", "muster_commit_seconds", average, false), one("journal append", "muster_journal_append_seconds", average, false),
			one("archive write", "muster_archive_put_seconds", average, false)),
		of("commands", "Commands", "Count", one("committed", "muster_commands_committed_total", total, false)),
		of("waiting", "Commands that wait, and tickets", "Count", one("commands that wait", "muster_commands_waiting", average, true), one("tickets that wait", "muster_matchmaking_tickets", average, true)),
		of("journal", "Journal", "Bytes", one("written", "muster_journal_bytes_total", total, false)),
		of("unsaved", "Journal behind the latest snapshot", "Bytes", one("unsaved", "muster_journal_unsaved_bytes", average, true)),
		of("snapshots", "Time of a snapshot", "Seconds", one("snapshot", "muster_snapshot_seconds", average, false)),
		of("archive", "Records moved to the archive", "Count", one("records", "muster_archive_records_total", total, false)),
		of("matchers", "Passes of matchers", "Count", one("passes", "muster_matchmaking_passes_total", total, false), one("cut short", "muster_matchmaking_passes_cut_short_total", total, false)),
		of("connections", "Connections by door", "Count", keptLines(kept, "muster_connections", average, "door")...),
		of("troubles", "Troubles", "Count", one("connections refused", "muster_connections_refused_total", total, false), one("failed sign-ins", "muster_failed_signins_total", total, false),
			one("snapshots failed", "muster_snapshots_failed_total", total, false), one("archive refused", "muster_archive_refused_total", total, false), one("panics", "muster_panics_total", total, false)),
		of("processor", "Processor", "Seconds", one("processor time", "process_cpu_seconds_total", total, false)),
		of("memory", "Memory", "Bytes", one("resident", "process_resident_memory_bytes", average, true), one("heap in use", "go_memstats_heap_inuse_bytes", average, true)),
		of("runtime", "Goroutines and descriptors", "Count", one("goroutines", "go_goroutines", average, true), one("open descriptors", "process_open_fds", average, true)),
	}
	return slices.DeleteFunc(all, func(g graph) bool { return len(g.Lines) == 0 })
}

// keptLines returns a line for each kept series of a family with these dimensions, in the order of their names.
func keptLines(kept *series.Store, family string, m measure, names ...string) (lines []line) {
	if kept == nil {
		return nil
	}
	kept.Keys(0, func(k series.Key) bool {
		metric, dims, err := k.Parse()
		if err != nil || metric != family || len(dims) != len(names) {
			return true
		}
		var parts []string
		for i, d := range dims {
			if d.Name != names[i] {
				return true
			}
			if d.Name != "outcome" {
				parts = append(parts, d.Value)
			}
		}
		lines = append(lines, line{Name: strings.Join(parts, " "), key: k, measure: m})
		return true
	})
	slices.SortFunc(lines, func(a, b line) int { return strings.Compare(a.Name, b.Name) })
	return lines[:min(len(lines), candidatesMax)]
}

func (d *Door) health(*http.Request) (*subject, error) {
	return &subject{Title: "Health of the service", Section: "health", path: Prefix + "/health", command: "curl --user KEY https://…/metrics  # asks for the secret", graphs: healthGraphs(d.config.Series),
		present: series.MakeKey("muster_healthy")}, nil
}
