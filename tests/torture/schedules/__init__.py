"""Suites of random cases: ``attempt(seed)`` of a module makes a case, judges it, and returns its outcome in a few words.

``mutants``
    Valid schedules broken, or changed and not broken: checker, simulator and formats against :mod:`.oracle`.
``simulations``
    Valid schedules on random costs: times, memory, idle times and chains against the slow simulator.
``streams``
    Orders with messages moved about, on each kind of streams: checker and simulator against an executor with queues.
``kernels``
    Every kernel compiled against plain Python, and the search's timing against the simulator's.
``bounds``
    Lower bounds of makespan and span against the best schedules at hand and an exact model.
``searches``
    Searches at every level of communication against published orders as they are and an exact model.
"""
