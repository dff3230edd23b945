// Package sdk has the messages of the Agones SDK, generated from sdk.proto.
package sdk
