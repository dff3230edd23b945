package gamelift

import (
	"cmp"

	"github.com/musterhq/muster/internal/fair"
	"github.com/musterhq/muster/internal/identity"
)

// Memory and places for requests, and the shares of one key, of one address, and of all client keys together. Every player
// has the game's client key; its share leaves room for backends under any use of that key.
const (
	// DefaultWorking is far above the requests in progress on a machine that keeps up, and bounds memory on one that does not.
	DefaultWorking = 8192

	// smallRequest is the size from which the memory of a request counts, in bytes of its body and its decoded input each: all
	// smaller ones together take no more than a quarter of a gigabyte.
	smallRequest = 16 << 10

	// arrivingMax bounds the bodies in arrival and those that have arrived, in bytes, and arrivingShare those from one address.
	arrivingMax   = 256 << 20
	arrivingShare = arrivingMax / 4

	// decodedMax bounds the memory of decoded requests, in bytes, and decodedShare that of one key.
	decodedMax   = 512 << 20
	decodedShare = decodedMax / 2

	// decodedClients bounds that of all client keys together, and decodedFrom that of client keys from one address.
	decodedClients = decodedMax / 2
	decodedFrom    = decodedMax / 8

	// translated is how many times its decoded size a request takes at most: once as the SDK's types, once as the core's.
	translated = 2
)

// Parts of the places for requests: one access key has a half, all client keys together a half, and one address with
// them an eighth of that.
const keyPart, clientsPart, addressPart = 2, 2, 16

// admission protects the process: it refuses requests beyond the bounds at once, before they take memory.
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

// work is the part of the admission that one request has taken.
type work struct {
	a       *admission
	by      *identity.Principal
	decoded int64
}

// partsOf are the amounts of places for requests.
func partsOf(most int64) (all, key, clients, address int64) {
	return most, most / keyPart, most / clientsPart, most / addressPart
}

// enter begins the work for a principal whose signature is valid.
func (a *admission) enter(by *identity.Principal) (work, bool) {
	if !a.working.Take(by, 1) {
		return work{}, false
	}
	return work{a: a, by: by}, true
}

// decode takes memory for an input of so many bytes.
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

// leave returns everything that was taken.
func (x *work) leave() {
	if x.a == nil {
		return
	}
	if x.decoded > 0 {
		x.a.decoded.Give(x.by, x.decoded)
	}
	x.a.working.Give(x.by, 1)
}

// pools are all of them by the names that metrics give them.
func (a *admission) pools() map[string]*fair.Pool {
	return map[string]*fair.Pool{
		"working": a.working.Keys, "working_clients": a.working.Clients, "arriving": a.arriving, "decoded": a.decoded.Keys, "decoded_clients": a.decoded.Clients,
	}
}
