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

// clientShare of places for requests is for all client keys together, addressShare of that for those from one address.
const (
	keyShare     = 2 // half
	clientShare  = 2
	addressShare = 8
)

// admission protects the process: it refuses requests beyond the bounds at once, before they take memory.
type admission struct {
	working       *fair.Pool // requests in progress, by key
	clients       *fair.Pool // of client keys, by address
	arriving      *fair.Pool // bytes of bodies, by address
	decoded       *fair.Pool // bytes of decoded requests, by key
	clientDecoded *fair.Pool // of client keys, by address
}

func newAdmission(l Limits) admission {
	most := int64(cmp.Or(l.Working, DefaultWorking))
	share := func(of, part int64) int64 { return max(1, of/part) }
	clients := share(most, clientShare)
	return admission{
		working:       fair.NewPool(most, share(most, keyShare)),
		clients:       fair.NewPool(clients, share(clients, addressShare)),
		arriving:      fair.NewPool(arrivingMax, arrivingShare),
		decoded:       fair.NewPool(decodedMax, decodedShare),
		clientDecoded: fair.NewPool(decodedClients, decodedFrom),
	}
}

// work is the part of the admission that one request has taken.
type work struct {
	a       *admission
	key     string
	address string
	client  bool
	decoded int64
}

// enter begins the work for a caller whose signature is valid.
func (a *admission) enter(caller *Caller, address string) (work, bool) {
	x := work{a: a, key: caller.KeyID, address: address, client: caller.Role == identity.Client}
	if !a.working.Take(x.key, 1) {
		return work{}, false
	}
	if x.client && !a.clients.Take(x.address, 1) {
		a.working.Give(x.key, 1)
		return work{}, false
	}
	return x, true
}

// decode takes memory for an input of so many bytes.
func (x *work) decode(bytes int64) bool {
	if bytes <= smallRequest {
		return true
	}
	bytes *= translated
	if !x.a.decoded.Take(x.key, bytes) {
		return false
	}
	if x.client && !x.a.clientDecoded.Take(x.address, bytes) {
		x.a.decoded.Give(x.key, bytes)
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
		x.a.decoded.Give(x.key, x.decoded)
	}
	if x.client {
		x.a.clients.Give(x.address, 1)
		if x.decoded > 0 {
			x.a.clientDecoded.Give(x.address, x.decoded)
		}
	}
	x.a.working.Give(x.key, 1)
}

// pools are all of them by the names that metrics give them.
func (a *admission) pools() map[string]*fair.Pool {
	return map[string]*fair.Pool{
		"working": a.working, "working_clients": a.clients, "arriving": a.arriving, "decoded": a.decoded, "decoded_clients": a.clientDecoded,
	}
}
