// Package trust decides which peers a node of a cluster talks to. A cluster has an authority of its own, made with it; the nodes
// prove their membership with certificates of this authority, and a new node is admitted by a join token.
//
// # The authority
//
// Every member keeps the authority's certificate and key, so any member can admit a node while others are down
// (docs/decisions/0062). A node therefore issues its own certificate when it starts, keeps it in memory only, and replaces it when half of its
// life is over. Certificates are valid from a day before they are issued, so that nodes work together whose clocks differ by an hour.
//
// A certificate names the cluster and the node in a URI: muster://CLUSTER/NODE. Both sides of a connection check that the certificate is
// of a trusted authority, in force, and of their cluster; a node that dials also checks the node that it wants to reach. Addresses are
// not compared with certificates, since nodes move. Connections are TLS 1.3, and none resumes an earlier one: each presents a certificate.
//
// What this does not do: a node that was removed still has the authority's key. If its machine may be in the wrong hands, the authority
// has to be replaced.
//
// # How to replace the authority
//
// An Authority may hold a second certificate and key. All of its certificates are trusted, the first one signs. Each step is taken at every
// member before the next one begins, and needs no restart: Save stores the authority, and Identity.Use puts it in force.
//
//  1. WithNext, at one member, makes the next certificate; its PEM replaces the authority of every other member. All nodes trust
//     both certificates, and present those of the old one.
//  2. Switched: nodes present certificates of the next one. Join tokens that were made before are void.
//  3. Alone: nodes trust the next one only. Established connections are not checked again, so the last act of the
//     replacement is to close them; the nodes open new ones. Before the second step, Alone abandons the replacement.
package trust
