// Package connlimit bounds how many connections the service holds: in total, for each address, for each door, and for
// connections that have not presented a credential yet ("unproven").
//
// The operating system bounds descriptors, and a store that cannot open a file cannot write. So the limits are derived from
// the descriptor limit, less a reserve that no connection can take. When a limit is reached, a new connection takes the
// place of an unproven one, if there is one: an attacker without credentials displaces its own connections, not the clients that
// sign in within milliseconds.
//
// # Which connection is closed
//
// The limits are looked at from the narrowest to the widest, and the first that is full decides:
//
//	address         the oldest unproven connection of the address
//	network         the oldest unproven one of the address that has the most of them in the network (an IPv6 /56)
//	unproven        the oldest of the network that has the most: the largest crowd. If that has fewer than 32, the oldest of all
//	HTTP, total     the same; without unproven ones, a proven HTTP connection that asks for nothing, the longest idle of 64
//
// Of the 32 oldest, one is preferred whose request is not being answered. If all are, the oldest goes once it is 5 s old, or at once
// if it is the oldest of all or of a larger crowd than the newcomer's. Where there is no candidate the newcomer is refused.
//
// One victim is enough. Each limit held before, so the newcomer breaks each by one at most, and a victim counts in the limit that
// decided and in every wider one: an unproven connection is always HTTP.
//
// An honest client has until its connection is the oldest candidate to sign in. Against an attacker with few networks it never is one,
// since the attacker's network is the larger crowd. Against one with very many, of fewer than 32 connections each, it is the time in which the
// attacker opens as many connections as may be unproven. A proven connection is never closed for one that only connects, except an idle one
// whose client opens another when it needs it. Attackers with credentials are another matter: the rates of keys and players bound them.
//
// Admitting costs a fixed number of looks: crowds are kept by size, whose steps are one; a network has at most 256 addresses; 32 and 64 are
// the most that are tried.
package connlimit
