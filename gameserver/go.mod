module github.com/musterhq/muster/gameserver

go 1.26.0

require (
	github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5 v5.5.0
	github.com/gorilla/websocket v1.5.3
)

require (
	github.com/DataDog/datadog-go/v5 v5.6.0 // indirect
	github.com/Microsoft/go-winio v0.5.0 // indirect
	github.com/golang/mock v1.6.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/sethvargo/go-retry v0.2.4 // indirect
	github.com/stretchr/testify v1.8.4 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
