package service

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain/fleet"
)

// output is operator.Output: it has the agent of a server process send what the process writes, to operators.
func (x *Service) output(process fleet.Key, bytes, lines int, follow bool) (next func(context.Context) (string, bool, error), end func(), err error) {
	o, err := x.agents.Output(process, bytes, lines, follow)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) (string, bool, error) {
		p, err := o.Next(ctx)
		return p.Text, p.Skipped, err
	}, o.Close, nil
}

// outputReaders is the metric of what output does.
func (x *Service) outputReaders() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "muster_output_readers", Help: "Operators who read the output of server processes at present.",
	}, func() float64 { return float64(x.agents.Stats().Readers) })
}

// nodeName is the name of this node in the cluster, or "".
func (x *Service) nodeName() string {
	if x.node == nil {
		return ""
	}
	return x.node.ID()
}
