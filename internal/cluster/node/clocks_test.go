package node_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/waittest"
)

// TestClocksApart: nodes on machines whose clocks are an hour apart hand over to each other, and restart. The cluster's time stays that of its first leader on all nodes.
func TestClocksApart(t *testing.T) {
	if testing.Short() {
		t.Skip("it mostly waits for elections")
	}
	ahead := []time.Duration{0, time.Hour, -time.Hour}
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	first := start(t, options(dirs[0], ""))
	first.create("custom-0")
	nodes := []*member{first}
	for i := range 2 {
		nodes = append(nodes, startAt(t, options(dirs[1+i], first.token()), ahead[1+i]))
	}
	first.until("three voters", func(s node.Status) bool { leaders, voters, _ := roles(s); return leaders == 1 && voters == 2 })
	onTime := func(what string) {
		t.Helper()
		for i, m := range nodes {
			waittest.Until(t, fmt.Sprintf("%s: the time of node %d is right", what, i), func() bool {
				return time.Until(m.Now()).Abs() < 10*time.Minute // far more than a slow machine takes, far less than the clocks are apart
			})
		}
	}
	onTime("after the start")
	for round := range 2 {
		for _, i := range []int{1, 2, 0} {
			nodes[0].handOver(nodes[i])
			nodes[i].create(fmt.Sprintf("custom-%d-%d", round, i))
			onTime(fmt.Sprintf("after node %d took over", i))
		}
		nodes[1].end()
		nodes[1] = startAt(t, options(dirs[1], ""), ahead[1])
		onTime("after a restart")
	}
}
