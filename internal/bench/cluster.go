package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// clusterPart measures one or more lines of the table, on a setup that it may share with other parts.
type clusterPart[S any] struct {
	name string
	run  func(*bench, context.Context, S) error
}

var (
	singleParts = []clusterPart[struct{}]{
		{"changes and reads in process, a single node", (*bench).singleChanges},
	}
	memberParts = []clusterPart[*members]{
		{"changes and reads in process", (*bench).clusterChanges},
		{"lag of followers", (*bench).clusterLag},
	}
	linkParts = []clusterPart[struct{}]{
		{"game servers while the leader dies", (*bench).serversOutliveLeader},
		{"links of a dead node", (*bench).serversReturn},
	}
	liveParts = []clusterPart[*liveCluster]{
		{"single node killed", (*bench).singleDies},
		{"empty node joins", (*bench).nodeJoins},
		{"leader killed", (*bench).leaderDies},
		{"leader hands over", (*bench).leaderHandsOver},
	}
)

// cluster measures three nodes on this machine, and a single one for comparison. A part that fails leaves a line in the table, and the others still run.
func (b *bench) cluster(ctx context.Context) error {
	var errs []error
	if b.chosen(append(names(singleParts), names(memberParts)...)) {
		errs = append(errs, b.inProcess(ctx))
	}
	errs = append(errs, runParts(b, ctx, struct{}{}, linkParts))
	if b.chosen(names(liveParts)) {
		errs = append(errs, b.withLivePlayers(ctx))
	}
	return errors.Join(errs...)
}

func names[S any](parts []clusterPart[S]) (all []string) {
	for _, p := range parts {
		all = append(all, p.name)
	}
	return all
}

// chosen reports whether one of these parts should run.
func (b *bench) chosen(names []string) bool {
	for _, name := range names {
		if strings.Contains(name, b.options.Part) {
			return true
		}
	}
	return false
}

func runParts[S any](b *bench, ctx context.Context, setUp S, parts []clusterPart[S]) error {
	var errs []error
	for _, p := range parts {
		if !b.chosen([]string{p.name}) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		b.progress("  %s", p.name)
		if err := p.run(b, ctx, setUp); err != nil {
			b.progress("    failed: %v", err)
			b.table.addFact(p.name, "–", "failed: %.100s", strings.ReplaceAll(err.Error(), "\n", " "))
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	return errors.Join(errs...)
}
