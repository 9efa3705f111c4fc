from pfungst.cli import main

main()
