module example.org/leaderepochs

go 1.21
