package access

import (
	"github.com/musterhq/muster/internal/domain"
)

// levelOfLimits is the level of the first release whose doors refuse an expired key, or a key used from outside its networks.
const levelOfLimits = 2

// Bounds of a key's networks.
const (
	SourcesMax = 32
	sourceMax  = 64 // bytes per network
)

// checkSources checks the bounds of the networks. Package identity parses them; a network that it cannot parse contains no address.
func checkSources(all []string) error {
	if len(all) > SourcesMax {
		return domain.Refuse(domain.Invalid, "%d networks: want at most %d from which an access key works", len(all), SourcesMax)
	}
	for _, x := range all {
		if x == "" || len(x) > sourceMax {
			return domain.Refuse(domain.Invalid, "network %.100q: want one in CIDR notation, such as 192.0.2.0/24", x)
		}
	}
	return nil
}
