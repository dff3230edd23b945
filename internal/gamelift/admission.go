package gamelift

import (
	"cmp"

	"github.com/musterhq/muster/internal/fair"
	"github.com/musterhq/muster/internal/identity"
)

// Limits of memory and concurrent requests, and the shares of one key, of one address, and of all client keys together. Every
// player has the game's client key; its share leaves room for backends however heavily that key is used.
const (
	// DefaultWorking is far above the concurrent requests of a machine that keeps up, and bounds memory on one that does not.
	DefaultWorking = 8192

	// smallRequest is the size from which a request's memory is counted, separately for its body and its decoded input, in
	// bytes. All smaller requests together take no more than a quarter of a gigabyte.
	smallRequest = 16 << 10

	// arrivingMax bounds the bodies that are arriving or have arrived, in bytes, and arrivingShare those from one address.
	arrivingMax   = 256 << 20
	arrivingShare = arrivingMax / 4

	// decodedMax bounds the memory of decoded requests, in bytes, and decodedShare the part of one key.
	decodedMax   = 512 << 20
	decodedShare = decodedMax / 2

	// decodedClients bounds the part of all client keys together, and decodedFrom that of client keys from one address.
	decodedClients = decodedMax / 2
	decodedFrom    = decodedMax / 8

	// translated is the largest multiple of its decoded size that a request takes: once as the SDK's types, once as the core's.
	translated = 2
)

// The concurrent requests of one access key are at most a half of the total, those of all client keys together a half, and
// those of client keys from one address an eighth of that.
const keyPart, clientsPart, addressPart = 2, 2, 16

// admission protects the process: it refuses requests beyond the bounds before they take memory.
type admission struct {
	working  fair.Shares // requests in progress
	arriving *fair.Pool  // bytes of bodies, by address
	decoded  fair.Shares // bytes of decoded requests
}

func newAdmission(l Limits) admission {
	most := int64(cmp.Or(l.Working, DefaultWorking))
	return admission{
		working:  fair.NewShares(partsOf(most)),
		arriving: fair.NewPool(arrivingMax, arrivingShare),
		decoded:  fair.NewShares(decodedMax, decodedShare, decodedClients, decodedFrom),
	}
}

// work is what one request has taken from the admission.
type work struct {
	a       *admission
	by      *identity.Principal
	decoded int64
}

// partsOf returns the numbers of concurrent requests.
func partsOf(most int64) (all, key, clients, address int64) {
	return most, most / keyPart, most / clientsPart, most / addressPart
}

// enter admits a request of a principal whose signature is valid.
func (a *admission) enter(by *identity.Principal) (work, bool) {
	if !a.working.Take(by, 1) {
		return work{}, false
	}
	return work{a: a, by: by}, true
}

// decode takes memory for a decoded input of so many bytes.
func (x *work) decode(bytes int64) bool {
	if bytes <= smallRequest {
		return true
	}
	bytes *= translated
	if !x.a.decoded.Take(x.by, bytes) {
		return false
	}
	x.decoded = bytes
	return true
}

// leave returns everything that the request took.
func (x *work) leave() {
	if x.a == nil {
		return
	}
	if x.decoded > 0 {
		x.a.decoded.Give(x.by, x.decoded)
	}
	x.a.working.Give(x.by, 1)
}

// pools returns all pools by their names in metrics.
func (a *admission) pools() map[string]*fair.Pool {
	return map[string]*fair.Pool{
		"working": a.working.Keys, "working_clients": a.working.Clients, "arriving": a.arriving, "decoded": a.decoded.Keys, "decoded_clients": a.decoded.Clients,
	}
}
