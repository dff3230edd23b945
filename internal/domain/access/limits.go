package access

import (
	"github.com/musterhq/muster/internal/domain"
)

// levelOfLimits is the level of the first release whose doors refuse a key that has expired, or that is used from another network than its own.
const levelOfLimits = 2

// Bounds of the networks from which a key works.
const (
	SourcesMax = 32
	sourceMax  = 64 // bytes of one of them
)

// checkSources bounds the networks. Package identity reads them; one that it cannot read contains no address.
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
