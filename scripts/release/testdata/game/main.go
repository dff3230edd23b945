// Command game stands for a game server that runs until it is ended.
package main

import "time"

func main() { time.Sleep(24 * time.Hour) }
