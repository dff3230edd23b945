package settings

import (
	"errors"
	"fmt"
	"net"

	"github.com/musterhq/muster/internal/hostname"
)

// checkCluster checks the addresses for other nodes. It does not check the join token: the joining node reports what is wrong with it.
func (s Settings) checkCluster() error {
	var errs []error
	if s.ClusterListen == "" {
		for _, x := range []struct {
			name string
			set  bool
		}{{"cluster-advertise", s.ClusterAdvertise != ""}, {"join", s.Join != ""}, {"observer", s.Observer}} {
			if x.set {
				errs = append(errs, fmt.Errorf("%s is for a node of a cluster: want cluster-listen as well", x.name))
			}
		}
		return errors.Join(errs...)
	}
	for _, x := range []named{{"cluster-listen", s.ClusterListen}, {"cluster-advertise", s.ClusterAdvertise}} {
		if _, _, err := net.SplitHostPort(x.value); x.value != "" && err != nil {
			errs = append(errs, fmt.Errorf("%s %q: %w; want HOST:PORT", x.name, x.value, err))
		}
	}
	if host, _, err := net.SplitHostPort(s.ClusterListen); err == nil && s.ClusterAdvertise == "" && hostname.IsUnspecified(host) {
		errs = append(errs, fmt.Errorf("cluster-listen %q is not an address at which other nodes can reach this one: set cluster-advertise", s.ClusterListen))
	}
	if s.VirtualClock {
		errs = append(errs, errors.New("virtual-clock: the clock of a cluster cannot be moved; it is for a single machine"))
	}
	return errors.Join(errs...)
}
