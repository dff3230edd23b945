//go:build !quick

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/internal/bench"
	"github.com/musterhq/muster/internal/heap"
	"github.com/musterhq/muster/internal/settings"
)

type benchCommand struct {
	Scenarios   []string       `arg:"" optional:"" name:"scenario" help:"Scenarios to run; all except soak by default. --list shows the names."`
	List        bool           `help:"Show the scenarios and exit."`
	Quick       bool           `help:"Run for a few seconds, to show that everything works; the figures mean nothing."`
	Measure     time.Duration  `default:"10s" placeholder:"TIME" help:"Duration of each measurement."`
	For         time.Duration  `default:"20m" placeholder:"TIME" help:"Duration of the scenario soak."`
	Rounds      int            `default:"2" placeholder:"N" help:"How often Muster and the bare service run in turn; the best run of each counts."`
	Connections []int          `placeholder:"N,..." help:"Keep-alive connections of the clients in the scenario players. Default: 64,256."`
	Warm        time.Duration  `placeholder:"TIME" help:"Warm-up time of this scenario. Default: 25s, after which ended records leave memory as fast as they arrive."`
	Rate        float64        `placeholder:"N" help:"Units per second of the scenarios players, games and backups, which then run only at this rate. Default: as many as the service can answer, and then half as many."`
	Attack      string         `placeholder:"TEXT" help:"In the scenario siege, run only attacks whose names contain this."`
	Part        string         `placeholder:"TEXT" help:"In the scenarios idle, cluster, console and agents, run only parts whose names contain this."`
	Sessions    int            `placeholder:"N" help:"Live player sessions in the scenario cluster. Default: 1000000."`
	Servers     int            `placeholder:"N" help:"Connected game servers in the scenario cluster. Default: 5000."`
	Repeats     int            `placeholder:"N" help:"How often the leader dies in the scenario cluster; it hands over twice as often. Default: 5."`
	Build       settings.Bytes `placeholder:"BYTES" help:"Size of the build in the scenario agents. Default: 1GiB."`
	Dir         string         `placeholder:"DIR" help:"Directory for the data, on the disk to measure. Default: the system's temporary directory."`
	Binary      string         `placeholder:"FILE" help:"The muster binary that runs as the service, such as an earlier build's, to compare two builds under the same load. What a scenario measures in process is always this one. Default: this one."`
	Profiles    string         `placeholder:"DIR" help:"Write profiles of the service to this directory: CPU time, allocations, execution traces."`
}

// Run measures the binary and writes the table. After a failure the table has the results up to that point.
func (c *benchCommand) Run(ctx context.Context, stdout io.Writer) error {
	if c.List {
		for _, s := range bench.Scenarios() {
			if _, err := fmt.Fprintf(stdout, "%-12s %s\n", s[0], s[1]); err != nil {
				return err
			}
		}
		return nil
	}
	if c.Rounds < 1 || c.Measure <= 0 || c.For <= 0 {
		return fmt.Errorf("--rounds %d, --measure %s, --for %s: want more than 0", c.Rounds, c.Measure, c.For)
	}
	binary, err := c.binary()
	if err != nil {
		return err
	}
	table, err := bench.Run(ctx, bench.Options{
		Binary: binary, Scenarios: c.Scenarios, Quick: c.Quick, Measure: c.Measure, Rounds: c.Rounds,
		Connections: c.Connections, Warm: c.Warm, Rate: c.Rate, Attack: c.Attack, Soak: c.For,
		Part: c.Part, Sessions: c.Sessions, Servers: c.Servers, Repeats: c.Repeats,
		Build: int64(c.Build), Dir: c.Dir, Profiles: c.Profiles, Progress: os.Stderr,
	})
	if table != nil {
		err = errors.Join(err, table.WriteMarkdown(stdout))
	}
	return err
}

func (c *benchCommand) binary() (string, error) {
	if c.Binary == "" {
		return os.Executable()
	}
	path, err := filepath.Abs(c.Binary)
	if err == nil {
		_, err = exec.LookPath(path)
	}
	if err != nil {
		return "", fmt.Errorf("--binary: want a muster binary: %w", err)
	}
	return path, nil
}

// benchBareCommand runs the service without a core, as the baseline of `muster bench`. It takes the relevant settings of serve, so
// that both services run with the same settings.
type benchBareCommand struct {
	settings.Settings
}

// Run serves until ctx ends.
func (c *benchBareCommand) Run(ctx context.Context) error {
	floor := heap.Tune(c.GCPercent, int64(c.HeapFloor))
	defer floor.Release()
	log := newLogger(os.Stderr, c.Settings)
	stopProfiler, err := startProfiler(c.Pprof, log)
	if err != nil {
		return err
	}
	defer stopProfiler()
	x, err := bench.OpenBare(c.Listen, c.Data, log)
	if err != nil {
		return err
	}
	log.Info("listening", "address", x.Addr())
	return x.Serve(ctx)
}

// benchAttackCommand runs the attackers of the scenario siege.
type benchAttackCommand struct{}

// Run attacks until standard input ends.
func (c *benchAttackCommand) Run(ctx context.Context, stdout io.Writer) error {
	return bench.Attack(ctx, os.Stdin, stdout)
}
