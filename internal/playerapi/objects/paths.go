package objects

// Prefix begins every path of the player API.
const Prefix = "/playerflow/v1/"

// The prefixes of the three realms, and the paths other than their calls.
const (
	PlayerPrefix   = Prefix + "player/"
	PartnerPrefix  = Prefix + "partner/"
	OperatorPrefix = Prefix + "operator/"

	KeysPath         = Prefix + "keys"          // the public keys of connection tokens
	ReadyPath        = Prefix + "ready"         // tells load balancers whether to send players here
	StreamPath       = PlayerPrefix + "stream"  // a player's event stream
	ServerStreamPath = PartnerPrefix + "stream" // the stream of a game server
	EventsPath       = PartnerPrefix + "events" // the stream of a subscription
)
