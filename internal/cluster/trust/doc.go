// Package trust decides which peers a node of a cluster talks to. Each cluster has its own authority; nodes prove their membership with
// certificates from this authority, and a join token admits a new node.
//
// # The authority
//
// Every member keeps the authority's certificate and key, so any member can admit a node while others are down (docs/decisions/0062). A node
// therefore issues its own certificate when it starts, keeps it only in memory, and replaces it after half of its validity. Certificates are
// valid from a day before their issue, so that nodes can work together even if their clocks differ by an hour.
//
// A certificate names the cluster and the node in a URI: muster://CLUSTER/NODE. Both sides of a connection check that the certificate comes
// from a trusted authority, is valid, and belongs to their cluster; the dialing side also checks that the peer is the intended node. Addresses
// are not compared with certificates, because nodes move. Connections use TLS 1.3 without session resumption, so each one presents a
// certificate.
//
// Limitation: a node that was removed still has the authority's key. If its machine may be compromised, replace the authority.
//
// # How to replace the authority
//
// An Authority may hold a second certificate and key. All of its certificates are trusted, the first one signs. Each step is taken at every
// member before the next one begins, and needs no restart: Save stores the authority, and Identity.Use puts it in force.
//
//  1. WithNext, at one member, makes the next certificate; its PEM replaces the authority of every other member. All nodes trust
//     both certificates, and present those of the old one.
//  2. Switched: nodes present certificates of the next one. Join tokens that were made before are void.
//  3. Alone: nodes trust only the next one. Established connections are not checked again, so the replacement ends by closing them, and the
//     nodes open new ones. Before the second step, Alone abandons the replacement.
package trust
