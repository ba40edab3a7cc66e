// A target for `kafkaspec judge`, to begin from: a leader epoch cache.
//
//	go build -C targets/examples/go -o leader_epochs .
//	kafkaspec judge --target targets/examples/go/leader_epochs leader_epochs
//
// Put your own type in the place of LeaderEpochs (epochs.go); this file stays as it is. See docs/judge.md and
// docs/protocol.md.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// A Subsystem answers the operations that it offers. An error is a refusal, except errUnknown.
type Subsystem interface {
	Operations() []string
	Init(configuration json.RawMessage)
	Apply(op string, arguments json.RawMessage) (any, error)
	Observe() any
}

var errUnknown = errors.New("unknown operation")

type request struct {
	I         int64           `json:"i"`
	Op        string          `json:"op"`
	Subsystem string          `json:"subsystem"`
	Args      json.RawMessage `json:"args"`
}

type object map[string]any

// serve answers line by line, and ends with the input. What was answered is written when no more input waits.
func serve(name, version string, subsystems map[string]Subsystem) error {
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	answers := json.NewEncoder(out) // ends each value with a newline
	answers.SetEscapeHTML(false)
	var current Subsystem
	written := time.Now()
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return out.Flush()
		} else if err != nil {
			return err
		}
		r := request{Args: json.RawMessage("{}")}
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		answer := object{"i": r.I}
		switch r.Op {
		case "hello":
			offered := object{}
			for name, s := range subsystems {
				offered[name] = object{"operations": s.Operations()}
			}
			answer["result"] = object{"protocol": 1, "name": name, "version": version, "subsystems": offered}
		case "init":
			if known, ok := subsystems[r.Subsystem]; ok {
				current = known
				current.Init(r.Args)
				answer["result"] = nil
			} else {
				answer["unknown"] = r.Subsystem
			}
		case "observe":
			answer["state"] = current.Observe()
		default:
			result, err := current.Apply(r.Op, r.Args)
			if errors.Is(err, errUnknown) {
				answer["unknown"] = r.Op
			} else if err != nil {
				answer["error"] = object{} // no class: Go has none. A message would be compared with Kafka's
			} else {
				answer["result"] = result
			}
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
		if in.Buffered() == 0 || time.Since(written) >= time.Second { // no answer is held back for longer
			if err := out.Flush(); err != nil {
				return err
			}
			written = time.Now()
		}
	}
}

func main() {
	if err := serve(name, "1", map[string]Subsystem{"leader_epochs": &LeaderEpochs{}}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
